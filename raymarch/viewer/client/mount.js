// Minimal client: a canvas that shows frames and orbits by drag.
function mount(root, channel) {
  const canvas = document.createElement("canvas");
  canvas.className = "rm-canvas";
  const line = document.createElement("div");
  line.className = "rm-line";
  root.append(canvas, line);
  const context = canvas.getContext("2d");
  let scene = null, azimuth = 0, elevation = 0, away = 1, id = 0;

  function send(moving) {
    const target = scene.camera.target;
    const ring = [Math.cos(azimuth) * Math.cos(elevation), Math.sin(azimuth) * Math.cos(elevation), Math.sin(elevation)];
    const position = target.map((t, a) => t + away * ring[a]);
    channel.send({type: "camera", id: ++id, position, target, up: [0, 0, 1], fov: scene.camera.fov,
      orthographic: false, width: canvas.width, height: canvas.height, moving});
  }
  channel.onmessage = async (header, bytes) => {
    if (header.type === "scene") {
      scene = header;
      const d = scene.camera.position.map((p, a) => p - scene.camera.target[a]);
      away = Math.hypot(...d); azimuth = Math.atan2(d[1], d[0]); elevation = Math.asin(d[2] / away);
      canvas.width = canvas.clientWidth; canvas.height = canvas.clientHeight;
      line.textContent = scene.name;
      send(false);
    } else if (header.type === "frame") {
      const picture = await createImageBitmap(new Blob([bytes], {type: "image/" + header.format}));
      const sx = canvas.width / header.of[0], sy = canvas.height / header.of[1];
      context.drawImage(picture, header.x * sx, header.y * sy, header.width * sx, header.height * sy);
    } else if (header.text) line.textContent = header.text;
  };
  let rest = 0;
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons || !scene) return;
    azimuth -= event.movementX * 0.01;
    elevation = Math.max(-1.5, Math.min(1.5, elevation + event.movementY * 0.01));
    send(true);
    clearTimeout(rest);
    rest = setTimeout(() => send(false), 150);
  });
}
export {mount};
