// Shaders of the ray marcher in GLSL ES 3.00: what of it is compiled says `marchSource(defines)`.
//
// Letters as in the kernels: o origin and d way of a ray in index space by unit of length, p a place there, T
// transmittance, tau optical depth of a step, k the number of a step. Places of samples are midpoints of steps from
// where a ray enters; a leap over empty cells is one of whole steps, so that samples stay where they were.

const CELL = 4; // samples along an edge of a cell of the distance field
const BRICK = 8; // cells along an edge of a brick
const BRICK_SIDE = 9; // samples, the border included
const RANGE_ROW = 1024; // entries in a row of the texture of ranges
const TABLE_TEXELS = 2048; // of a transfer function
const MAX_PLANES = 12; // that cut rays: those of the look, and a box

const MARCH_HEAD = `
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp sampler3D;
precision highp usampler3D;

uniform sampler3D u_first;    // colour features and raw density (a), or raw density (r)
#if DEGREE == 1
uniform sampler3D u_second, u_third, u_fourth;  // nine features of harmonics 1 to 3
#endif
uniform usampler3D u_table;   // brick: 0 for none, else its entry and one
uniform usampler3D u_cells;   // chessboard distance to the nearest cell where something is seen
uniform sampler2D u_ranges;   // low and span of each channel of an entry
uniform sampler2D u_knots;    // colour and opacity over values
uniform ivec3 u_grid;         // bricks along the atlas
uniform vec3 u_perTexel;
uniform int u_bricks;         // that have bytes
uniform vec3 u_top;           // index of the last sample
uniform ivec3 u_bricksAlong;  // of one box
uniform ivec3 u_cellsAlong;
uniform float u_empty;        // raw density where no brick is
uniform vec4 u_fromWorld[3];  // rows of index_from_world
uniform vec4 u_ndc[4];        // rows of ndc_from_world
uniform vec3 u_right, u_up, u_back, u_eye;
uniform vec4 u_lens;          // focal lengths, principal point [pixel]
uniform float u_parallel;
uniform vec2 u_pixel;         // pixels of the camera that one drawn is wide and high
uniform float u_rows;         // that are drawn
uniform float u_dt, u_shift, u_inverseScale, u_minT, u_minWeight;
uniform vec3 u_background;
uniform vec4 u_planes[${MAX_PLANES}];
uniform int u_planeCount;
uniform vec2 u_window;        // black and white of values
uniform vec4 u_place;         // first value and span of the table, 1 / unit length
uniform float u_exposure;     // factor of what is shown
uniform float u_masked;       // 1 where values are black where no box is met
uniform float u_level, u_smooth;
uniform vec4 u_light;         // ambient, diffuse, specular, shininess
uniform vec4 u_lamp;          // direction to it; 1 for a headlight
uniform vec4 u_paint;         // colour of the surface, 1 where it is given

out vec4 o_colour;

const float FAR = 1e30;
const float PARALLEL = 1e-12;
int g_reads = 0;              // of textures
ivec3 g_brick = ivec3(-1);    // that was visited last, its box in z
bool g_there = false;
int g_entry = 0;
vec3 g_corner = vec3(0.0);    // texel of its first sample
vec2 g_density = vec2(0.0);   // low and span
int g_coloured = -1;          // entry whose ranges of colour are these
vec4 g_low, g_more;
ivec3 g_cell = ivec3(-1);
int g_distance = 0;

#ifdef COUNT
#define READ g_reads++;
#else
#define READ
#endif
`;

const MARCH_FIELD = `
// --- The field: interpolated raw density and colour ---

ivec2 rangeAt(int entry, int texel) {
  return ivec2((entry & ${RANGE_ROW - 1}) * RANGE_TEXELS + texel, entry / ${RANGE_ROW});
}

void visit(ivec3 brick) {
  if (brick == g_brick) return;
  g_brick = brick;
  uint found = texelFetch(u_table, brick, 0).r;
  READ
  g_there = found > 0u;
  if (!g_there) return;
  g_entry = int(found) - 1;
  g_density = texelFetch(u_ranges, rangeAt(g_entry, 0), 0).rg;
  READ
  int at = g_entry < u_bricks ? g_entry : 0;
  g_corner = vec3(${BRICK_SIDE} * ivec3(at % u_grid.x, (at / u_grid.x) % u_grid.y, at / (u_grid.x * u_grid.y))) + 0.5;
}

// Place of p in the atlas, its brick visited.
vec3 texelOf(vec3 p, int box) {
  ivec3 brick = min(ivec3(p) / ${BRICK}, u_bricksAlong - 1);
  visit(brick + ivec3(0, 0, box * u_bricksAlong.z));
  return (g_corner + (p - vec3(brick * ${BRICK}))) * u_perTexel;
}

vec4 bytesAt(vec3 texel) {
  READ
  return textureLod(u_first, texel, 0.0);
}

float rawOf(vec4 bytes) {
#ifdef COLOURED
  return g_density.x + g_density.y * bytes.a;
#else
  return g_density.x + g_density.y * bytes.r;
#endif
}

float rawAt(vec3 p, int box) {
  vec3 texel = texelOf(p, box);
  if (!g_there) return u_empty;
  return rawOf(bytesAt(texel));
}

float density(float x) {
#if DENSITY == 0
  return max(x, 0.0) + log(1.0 + exp(-abs(x)));
#elif DENSITY == 1
  return max(x, 0.0);
#elif DENSITY == 2
  return exp(min(x, 15.0));
#else
  return x;
#endif
}

// Value of a raw density, in a box in whose own unit of length it counts.
float valueOf(float raw) {
  return density(raw + u_shift) * u_inverseScale;
}

// Colour of what was fetched of the brick that was visited last.
vec3 colourOf(vec4 bytes, vec3 texel, vec3 heading) {
#ifdef COLOURED
  if (g_coloured != g_entry) {
    g_coloured = g_entry;
    g_low = texelFetch(u_ranges, rangeAt(g_entry, 1), 0);
    g_more = texelFetch(u_ranges, rangeAt(g_entry, 2), 0);
    READ READ
  }
  vec4 low = g_low, more = g_more;
  vec3 total = 0.28209479177387814 * (vec3(low.r, low.b, more.r) + vec3(low.g, low.a, more.g) * bytes.rgb);
#if DEGREE == 1
  vec4 b = more.b + more.a * textureLod(u_second, texel, 0.0), c = more.b + more.a * textureLod(u_third, texel, 0.0);
  float e = more.b + more.a * textureLod(u_fourth, texel, 0.0).r;
  READ READ READ
  vec3 Y = 0.4886025119029199 * vec3(-heading.y, heading.z, -heading.x);
  total += Y.x * b.rgb + Y.y * vec3(b.a, c.rg) + Y.z * vec3(c.ba, e);
#endif
#else
  vec3 total = vec3(0.0);
#endif
#if COLOUR == 0
  return 1.0 / (1.0 + exp(-total));
#elif COLOUR == 1
  return max(total + 0.5, 0.0);
#else
  return total;
#endif
}

// Colour and opacity that the table has for a value.
vec4 shadeOf(float value) {
  float at = clamp((value - u_place.x) / u_place.y, 0.0, 1.0) * float(${TABLE_TEXELS - 1});
  int i = min(int(at), ${TABLE_TEXELS - 2});
  READ READ
  return mix(texelFetch(u_knots, ivec2(i, 0), 0), texelFetch(u_knots, ivec2(i + 1, 0), 0), at - float(i));
}

float extinctionOf(float opacity) {
  return -log(1.0 - min(opacity, ${1 - 2 ** -20})) * u_place.z;
}

// --- Normals, by central differences; one-sided at faces, as if the field went on evenly there ---

float beyond(vec3 p, int a) {
  if (p[a] >= 0.0 && p[a] <= u_top[a]) return rawAt(p, 0);
  vec3 face = p, inner = p;
  face[a] = clamp(p[a], 0.0, u_top[a]);
  inner[a] = face[a] == 0.0 ? 1.0 : u_top[a] - 1.0;
  float there = rawAt(face, 0);
  return there + abs(p[a] - face[a]) * (there - rawAt(inner, 0));
}

vec3 slopeAt(vec3 p) {
  vec3 slope;
  for (int a = 0; a < 3; a++) {
    vec3 low = p, high = p;
    if (u_smooth > 0.5) {
      low[a] = p[a] - 1.0;
      high[a] = p[a] + 1.0;
      slope[a] = 0.5 * (beyond(high, a) - beyond(low, a));
    } else {
      low[a] = min(floor(p[a]), u_top[a] - 1.0);
      high[a] = low[a] + 1.0;
      slope[a] = rawAt(high, 0) - rawAt(low, 0);
    }
  }
  return slope;
}

vec3 lit(vec3 colour, vec3 p, vec3 heading) {
  vec3 s = slopeAt(p), e = -heading;
  vec3 slope = s.x * u_fromWorld[0].xyz + s.y * u_fromWorld[1].xyz + s.z * u_fromWorld[2].xyz;
  float most = max(max(abs(slope.x), abs(slope.y)), abs(slope.z));
  vec3 n = most > 1e-30 ? normalize(slope / most) : vec3(0.0);
  if (dot(n, e) < 0.0) n = -n;
  vec3 lamp = u_lamp.w > 0.5 ? e : u_lamp.xyz;
  vec3 between = u_lamp.w > 0.5 ? e : normalize(u_lamp.xyz + e);
  vec3 own = mix(colour, u_paint.rgb, u_paint.a);
  float glossy = max(dot(n, between), 0.0);
  float gloss = glossy > 0.0 ? u_light.z * pow(glossy, u_light.w) : 0.0;
  return own * (u_light.x + u_light.y * max(dot(n, lamp), 0.0)) + gloss;
}
`;

const MARCH_RAYS = `
// --- Rays: into index space, cut by boxes and planes ---

bool toIndex(vec3 origin, vec3 way, out vec3 place, out vec3 heading, out vec3 o, out vec3 d) {
  place = origin;
  heading = way;
#ifdef NDC
  vec4 a, b;
  for (int i = 0; i < 4; i++) {
    a[i] = dot(u_ndc[i].xyz, origin) + u_ndc[i].w;
    b[i] = dot(u_ndc[i].xyz, way);
  }
  float ahead = a.z + 3.0 * a.w, toward = b.z + 3.0 * b.w;
  if (ahead < 0.0) {
    if (toward <= PARALLEL) return false;
    a -= ahead / toward * b;
  }
  place = a.xyz / a.w;
  heading = normalize((b.xyz - place * b.w) / a.w);
#endif
  for (int i = 0; i < 3; i++) {
    o[i] = dot(u_fromWorld[i].xyz, place) + u_fromWorld[i].w;
    d[i] = dot(u_fromWorld[i].xyz, heading);
  }
  return true;
}

vec2 cutByBox(vec3 o, vec3 d, vec3 low, vec3 high) {
  float near = 0.0, far = FAR;
  for (int a = 0; a < 3; a++) {
    if (abs(d[a]) > PARALLEL) {
      float one = (low[a] - o[a]) / d[a], other = (high[a] - o[a]) / d[a];
      near = max(near, min(one, other));
      far = min(far, max(one, other));
    } else if (o[a] < low[a] || o[a] > high[a]) {
      far = -1.0;
    }
  }
  return vec2(near, far);
}

vec2 cutByPlanes(vec2 ends, vec3 place, vec3 heading, float scale) {
  for (int i = 0; i < u_planeCount; i++) {
    float ahead = dot(u_planes[i].xyz, place) - u_planes[i].w, toward = dot(u_planes[i].xyz, heading);
    if (abs(toward) > PARALLEL) {
      float t = -scale * ahead / toward;
      if (toward > 0.0) ends.x = max(ends.x, t);
      else ends.y = min(ends.y, t);
    } else if (ahead < 0.0) {
      ends.y = -1.0;
    }
  }
  return ends;
}

// near and far of segment s of a ray through nested boxes, o in its box's own index space.
vec2 segmentOf(vec3 o, vec3 d, int s) {
  vec2 ends = cutByBox(o, d, vec3(0.0), u_top);
#if BOXES > 1
  if (s != BOXES - 1) {
    vec2 within = cutByBox(o, d, 0.25 * u_top, 0.75 * u_top);
    bool meets = within.y >= within.x;
    if (meets && s < BOXES - 1) ends.y = within.x;
    else if (meets) ends.x = within.y;
    else if (s > BOXES - 1) ends.y = -1.0;
  }
#endif
  return ends;
}

// Steps from p that stay in cells where nothing is seen; 0 where its own is seen.
int emptySteps(vec3 p, vec3 d, int box) {
  vec3 q = p * ${1 / CELL};
  ivec3 cell = min(ivec3(q), u_cellsAlong - 1), at = cell + ivec3(0, 0, box * u_cellsAlong.z);
  if (at != g_cell) {
    g_cell = at;
    g_distance = int(texelFetch(u_cells, at, 0).r);
    READ
  }
  if (g_distance == 0) return 0;
  float leave = FAR;
  for (int a = 0; a < 3; a++) {
    float speed = d[a] * ${1 / CELL};
    if (speed > PARALLEL) leave = min(leave, (float(cell[a] + g_distance) - q[a]) / speed);
    else if (speed < -PARALLEL) leave = min(leave, (float(cell[a] - g_distance + 1) - q[a]) / speed);
  }
  return max(int(min(leave / u_dt, 1e6)), 0) + 1;
}

float grey(float value) {
  return (value - u_window.x) / (u_window.y - u_window.x);
}
`;

const MARCH_MAIN = `
// --- What a ray makes of its samples ---

#if MODE == 6
vec3 surface(vec3 entry, vec3 d, float reach, vec3 heading, out bool hit) {
  hit = false;
  int n = int(reach / u_dt) + 1, run = 0;  // steps in a row
  float earlier = 0.0, before = 0.0;  // differences from the level two steps before, and one
  for (int k = 0; k <= n;) {
    float t = min(float(k) * u_dt, reach), at = float(k - 1) * u_dt;
    vec3 p = entry + t * d;
    int empty = emptySteps(p, d, 0);
    if (empty > 0) {
      k += empty;
      run = 0;
      continue;
    }
    if (run == 0 && k > 0) {  // after a leap: the step before this one
      before = rawAt(entry + at * d, 0) - u_level;
      run = 1;
    }
    float now = rawAt(p, 0) - u_level, low = max(at, 0.0), high = t, a = before, b = now;
    bool crosses = run > 0 && (now >= 0.0) != (before >= 0.0);
    if (run > 1 && !crosses && abs(before) <= abs(earlier) && abs(before) <= abs(now)) {
      // A sheet thinner than a step: where the parabola through three steps turns.
      float bend = earlier - 2.0 * before + now, off = bend != 0.0 ? 0.5 * (earlier - now) / bend : 0.0;
      if ((before - 0.25 * (earlier - now) * off) * before < 0.1 * before * before) {
        float turn = at + clamp(off, -1.0, 1.0) * u_dt, there = rawAt(entry + turn * d, 0) - u_level;
        if ((there >= 0.0) != (before >= 0.0)) {
          crosses = true;
          low = off < 0.0 ? at - u_dt : at;
          a = off < 0.0 ? earlier : before;
          high = turn;
          b = there;
        }
      }
    }
    if (crosses) {
      float root = high, kept = 0.0;
      for (int i = 0; i < 8; i++) {  // regula falsi, an end that stays twice counting half (Illinois)
        root = (low * b - high * a) / (b - a);
        float here = rawAt(entry + root * d, 0) - u_level;
        if ((here >= 0.0) == (b >= 0.0)) {
          high = root;
          b = here;
          a *= kept > 0.5 ? 0.5 : 1.0;
          kept = 1.0;
        } else {
          low = root;
          a = here;
          b *= kept < -0.5 ? 0.5 : 1.0;
          kept = -1.0;
        }
      }
      hit = true;
      vec3 q = clamp(entry + root * d, vec3(0.0), u_top);
      vec3 texel = texelOf(q, 0);
      vec4 bytes = g_there ? bytesAt(texel) : vec4(0.0);
      return lit(colourOf(bytes, texel, heading), q, heading);
    }
    earlier = before;
    before = now;
    run++;
    k++;
  }
  return u_background;
}
#endif

void main() {
  vec2 pixel = vec2(gl_FragCoord.x, u_rows - gl_FragCoord.y) * u_pixel;
  vec2 plane = vec2(pixel.x - u_lens.z, u_lens.w - pixel.y) / u_lens.xy;
  vec3 way = normalize(plane.x * u_right + plane.y * u_up - u_back), origin = u_eye;
  if (u_parallel > 0.5) {
    origin += plane.x * u_right + plane.y * u_up;
    way = -u_back;
  }
  vec3 place, heading, o, d;
  bool comes = toIndex(origin, way, place, heading, o, d);
  vec3 last = u_top * ${1 - 2 ** -21};
  float T = 1.0, best = 0.0, sum = 0.0, through = 0.0;
  vec3 light = vec3(0.0);
  bool met = false;
  for (int s = 0; s < 2 * BOXES - 1 && comes; s++) {
    int box = abs(s - (BOXES - 1));
    float scale = 1.0 / float(1 << box);
    vec3 own = BOXES > 1 ? 0.5 * u_top + (o - 0.5 * u_top) * scale : o;
    vec2 ends = cutByPlanes(segmentOf(own, d, s), place, heading, scale);
    float reach = ends.y - ends.x;
    if (!(reach > 0.0)) continue;
    vec3 entry = clamp(own + ends.x * d, vec3(0.0), last), leave = clamp(own + ends.y * d, vec3(0.0), last);
    vec3 along = (leave - entry) / reach;
    met = true;
    through += reach / scale;
#if MODE == 6
    bool hit;
    light = surface(entry, along, reach, way, hit);
    T = hit ? 0.0 : 1.0;
#else
    int n = int(reach / u_dt);
    for (int k = 0; k <= n;) {
#if MODE == 0 || MODE == 1 || MODE == 2
      if (T < u_minT) break;
#endif
      float begin = float(k) * u_dt, width = min(u_dt, reach - begin);
      vec3 p = entry + (begin + 0.5 * width) * along;
      int empty = emptySteps(p, along, box);
      if (empty > 0) {
        k += empty;
        continue;
      }
      vec3 texel = texelOf(p, box);
      vec4 bytes = vec4(0.0);
      float raw = u_empty;
      if (g_there) {
        bytes = bytesAt(texel);
        raw = rawOf(bytes);
      }
      float value = valueOf(raw);
#if MODE == 0 || MODE == 1
      float tau = value * width;
#if MODE == 0
      float passing = exp(-tau), weight = T * (1.0 - passing);
      T *= passing;
#else
      float weight = min(tau, T);
      T -= weight;
#endif
      if (abs(weight) >= u_minWeight && g_there) light += weight * colourOf(bytes, texel, way);
#elif MODE == 2
      vec4 shade = shadeOf(value);
      if (shade.a > 0.0) {
        float passing = exp(-extinctionOf(shade.a) * width), weight = T * (1.0 - passing);
        T *= passing;
        if (weight >= u_minWeight) {
#ifdef LIT
          shade.rgb = lit(shade.rgb, p, way);
#endif
          light += weight * shade.rgb;
        }
      }
#elif MODE == 3
      best = sum == 0.0 ? value * scale : max(best, value * scale);
      sum = 1.0;
#elif MODE == 4
      best = sum == 0.0 ? value * scale : min(best, value * scale);
      sum = 1.0;
#else
      sum += value * max(width, 0.0);
#endif
      k++;
    }
#endif
  }
#if MODE == 6
  light = met ? light : u_background;
#elif MODE == 3
  light = vec3(met && sum > 0.0 ? grey(best) : 0.0);
#elif MODE == 4
  light = vec3(met ? (sum > 0.0 ? grey(best) : 1.0) : grey(0.0));
#elif MODE == 5
  light = vec3(grey(sum));
#elif MODE == 7
  light = vec3(grey(through > 0.0 ? sum / through : 0.0));
#else
  light += T * u_background;
#endif
#ifdef COUNT
  o_colour = vec4(float(g_reads / 256), float(g_reads % 256), 0.0, 255.0) / 255.0;
#else
#if MODE == 3 || MODE == 4 || MODE == 5 || MODE == 7
  if (u_masked > 0.5 && !met) light = vec3(0.0);
  float cover = max(max(light.r, light.g), light.b);
#else
  float cover = 1.0 - T;
#endif
  o_colour = clamp(vec4(light * u_exposure, cover), 0.0, 1.0);
#endif
}
`;

const MODE_NUMBERS = {
  "emission-absorption": 0,
  additive: 1,
  transfer: 2,
  maximum: 3,
  minimum: 4,
  "x-ray": 5,
  isosurface: 6,
  average: 7,
};
const DENSITY_NUMBERS = { softplus: 0, relu: 1, exponential: 2, identity: 3 };
const COLOUR_NUMBERS = { sigmoid: 0, clamped: 1, identity: 2 };

const EVERYWHERE = `#version 300 es
in vec2 a_corner;
void main() { gl_Position = vec4(a_corner, 0.0, 1.0); }
`;

// The mean of the rays of each pixel.
const RESOLVE = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D u_drawn;
uniform int u_side;  // rays along a pixel's edge
out vec4 o_colour;
void main() {
  vec3 sum = vec3(0.0);
  ivec2 first = ivec2(gl_FragCoord.xy) * u_side;
  for (int y = 0; y < u_side; y++)
    for (int x = 0; x < u_side; x++) sum += texelFetch(u_drawn, first + ivec2(x, y), 0).rgb;
  o_colour = vec4(sum / float(u_side * u_side), 1.0);
}
`;

function marchSource(defines) {
  const lines = Object.entries(defines).map(([name, value]) => `#define ${name} ${value}`);
  return ["#version 300 es", ...lines, MARCH_HEAD, MARCH_FIELD, MARCH_RAYS, MARCH_MAIN].join("\n");
}
