// The viewer's look as the ray marcher has it.

const FLAT_LIGHT = { ambient: 1, diffuse: 0, specular: 0, shininess: 1, lamp: null, colour: null, smooth: true };
const DRAWN_AS = { "x-ray-exact": "x-ray" }; // modes without steps by the ones with steps

// The look that is drawn here, { look } or { why }: what is not drawn here, in a few words.
// `record`: of the packed volume; `frame`: header of the server's last picture, by whose window values are shown.
function marchLook(viewer, record, frame) {
  const { lookNow: now, mode: rule, view, scene } = viewer;
  const mode = DRAWN_AS[now.mode] ?? now.mode;
  if (!(mode in MODE_NUMBERS)) return { why: "this mode" };
  if (now.slice) return { why: "slices" };
  if ((now.extras ?? "image") !== "image") return { why: now.extras };
  if (view !== null) return { why: "a photograph's own camera" };
  const table = rule.table ? (now.table ?? scene.look.table) : null;
  const iso = rule.iso ? (now.iso ?? scene.look.iso) : null;
  if ((rule.table && !table) || (rule.iso && !Number.isFinite(iso))) return { why: "this mode" };
  const window = rule.values ? (now.window ?? (frame?.mode === now.mode ? frame.window : null)) : null;
  if (rule.values && !window) return { why: "a picture whose window is not known yet" };
  let shading = null;
  if (rule.table) shading = now.shading ? record.shading : null;
  else if (rule.iso) shading = now.shading ? record.shading : FLAT_LIGHT;
  const { clip } = now;
  return {
    look: {
      mode,
      step: now.step ?? 0.5,
      table: table && lookOfRecord(table),
      iso,
      window,
      shading,
      background: rule.values ? [0, 0, 0] : (now.background ?? record.background),
      planes: [...(clip?.lower ? planesOfBox(clip.lower, clip.upper) : []), ...record.planes],
      exposure: 2 ** (now.exposure ?? 0),
      masked: true,
    },
  };
}
