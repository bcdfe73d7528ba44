// Ray marcher on WebGL2 of a volume that was packed into an atlas of bricks (viewer/page/atlas.py).
//
// It needs nothing but `shader.js`: pages, the viewer and widgets of notebooks all draw by it. A camera is
// { pose: 16 numbers, row by row, world_from_camera; focal: [x, y]; principal: [x, y]; width, height; parallel }.
// A look is { mode, step, table: { values, rgba, unitLength }, iso, window: [low, high], shading or null, background,
// planes: [[nx, ny, nz, offset], ...], exposure: factor of what is shown, masked: whether values are black where a ray
// meets no box }.

const EXACT = { step: 1, transmittance: 0, weight: 0 };

// Longer steps, and nothing of what hardly counts: how rays are marched while something moves.
function quickSteps(step) {
  return step > 1 ? { step, transmittance: 0.02, weight: 0.004 } : EXACT;
}

class Raymarcher {
  // `volume` is what `unpackVolume` gives. Throws an Error of one line where WebGL2 or something it needs is missing.
  constructor(canvas, volume) {
    const how = { alpha: false, antialias: false, depth: false, stencil: false, powerPreference: "high-performance" };
    const gl = canvas.getContext("webgl2", how);
    if (!gl) throw new Error("this browser has no WebGL2");
    Object.assign(this, { canvas, gl, programs: new Map(), drawn: null, leaps: true });
    this.take(volume);
    this.prepare();
  }

  take(volume) {
    Object.assign(this, { volume, head: volume.head, ranges: cellRanges(volume) });
  }

  // Another volume in the place of the one there was; its look is set next.
  setVolume(volume) {
    const { gl } = this;
    this.take(volume);
    if (gl.isContextLost()) return;
    for (const texture of [...this.atlas, this.table, this.rangeTexture, this.cells]) gl.deleteTexture(texture);
    Object.assign(this, { cellsOf: null, cells: null });
    this.upload(volume);
  }

  // Whether the graphics are the processor's.
  get isSoftware() {
    const { gl } = this;
    const told = gl.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER;
    this.renderer ??= String(gl.getParameter(told));
    return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(this.renderer);
  }

  // Gives all of the GPU back.
  end() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  // All that lives on the GPU; anew where the context was lost and came back.
  prepare() {
    const { gl, volume } = this;
    this.programs.clear();
    Object.assign(this, { drawn: null, cellsOf: null, knots: null, cells: null });
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.pixelStorei(gl.PACK_ALIGNMENT, 1);
    const corners = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, corners);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    this.upload(volume);
    if (this.look) this.setLook({});
  }

  upload({ head, table, ranges, planes }) {
    const { gl } = this;
    const side = BRICK_SIDE;
    const most = Math.floor(gl.getParameter(gl.MAX_3D_TEXTURE_SIZE) / side);
    this.grid = atlasGrid(head.count, most);
    const size = this.grid.map((n) => n * side);
    const groups = head.channels === 1 ? [[0]] : [[1, 2, 3, 0]];
    if (head.channels > 4) groups.push([4, 5, 6, 7], [8, 9, 10, 11], [12]);
    this.atlas = groups.map((channels, unit) => {
      const [inside, format] = channels.length === 1 ? [gl.R8, gl.RED] : [gl.RGBA8, gl.RGBA];
      const texture = this.texture3D(unit, inside, size, gl.LINEAR);
      const layers = new Uint8Array(size[0] * size[1] * side * channels.length);
      for (let z = 0; z < this.grid[2]; z++) {
        const first = z * this.grid[0] * this.grid[1];
        if (first >= head.count) break;
        fillLayers(layers, channels.map((channel) => planes[channel]), first, head.count, this.grid);
        gl.texSubImage3D(gl.TEXTURE_3D, 0, 0, 0, z * side, size[0], size[1], side, format, gl.UNSIGNED_BYTE, layers);
      }
      return texture;
    });
    const along = head.bricks;
    this.table = this.texture3D(4, gl.R32UI, [along[0], along[1], along[2] * head.boxes], gl.NEAREST);
    const [x, y, z] = [along[0], along[1], along[2] * head.boxes];
    gl.texSubImage3D(gl.TEXTURE_3D, 0, 0, 0, 0, x, y, z, gl.RED_INTEGER, gl.UNSIGNED_INT, table);
    this.rangeTexels = head.channels === 1 ? 1 : 3;
    const rows = Math.max(Math.ceil(head.entries / RANGE_ROW), 1);
    const texels = new Float32Array(rows * RANGE_ROW * this.rangeTexels * 4);
    for (let e = 0; e < head.entries; e++) {
      const numbers = ranges.subarray(2 * head.channels * e, 2 * head.channels * (e + 1));
      const at = 4 * this.rangeTexels * e;
      texels.set([numbers[0], numbers[1]], at);
      if (this.rangeTexels > 1) texels.set(numbers.subarray(2, Math.min(10, numbers.length)), at + 4);
    }
    this.rangeTexture = this.texture2D(6, gl.RGBA32F, RANGE_ROW * this.rangeTexels, rows, gl.RGBA, gl.FLOAT, texels);
  }

  texture3D(unit, inside, [x, y, z], filter) {
    const { gl } = this;
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_3D, texture);
    gl.texStorage3D(gl.TEXTURE_3D, 1, inside, x, y, z);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_3D, name, filter);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R])
      gl.texParameteri(gl.TEXTURE_3D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  texture2D(unit, inside, width, height, format, type, data, filter = this.gl.NEAREST) {
    const { gl } = this;
    const texture = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, inside, width, height, 0, format, type, data);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, filter);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T])
      gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  // Another look, or a part of one. Throws an Error of one line for a table that is none.
  setLook(part) {
    const look = { ...(this.look ?? {}), ...part };
    if (look.table) requireTable(look.table);
    this.look = look;
    if (this.gl.isContextLost()) return;
    if (look.table && (part.table || !this.knots)) this.putTable(look.table);
    this.putCells();
  }

  putTable(table) {
    const { gl } = this;
    const texels = tableTexels(table);
    if (this.knots) gl.deleteTexture(this.knots);
    this.knots = this.texture2D(7, gl.RGBA32F, TABLE_TEXELS, 1, gl.RGBA, gl.FLOAT, texels);
  }

  // Distances to what is seen, by the look: once for each that sees something else.
  putCells() {
    const { gl, head, look, ranges } = this;
    const key = seenKey(look, this.leaps);
    if (key === this.cellsOf) return;
    const seen = this.leaps ? seenCells(ranges, head, look) : new Uint8Array(ranges.low.length).fill(1);
    const [x, y, z] = head.bricks.map((n) => 2 * n);
    const distance = new Uint8Array(seen.length);
    const each = x * y * z;
    for (let box = 0; box < head.boxes; box++)
      distance.set(chessboardDistance(seen.subarray(box * each, (box + 1) * each), [x, y, z]), box * each);
    if (this.cells) gl.deleteTexture(this.cells);
    this.cells = this.texture3D(5, gl.R8UI, [x, y, z * head.boxes], gl.NEAREST);
    gl.texSubImage3D(gl.TEXTURE_3D, 0, 0, 0, 0, x, y, z * head.boxes, gl.RED_INTEGER, gl.UNSIGNED_BYTE, distance);
    this.cellsOf = key;
  }

  program(counts) {
    const { head, look } = this;
    const defines = {
      MODE: MODE_NUMBERS[look.mode],
      DENSITY: DENSITY_NUMBERS[head.activation.density],
      COLOUR: COLOUR_NUMBERS[head.activation.colour],
      DEGREE: head.degree ?? 0,
      BOXES: head.boxes,
      RANGE_TEXELS: this.rangeTexels,
    };
    if (head.channels > 1) defines.COLOURED = 1;
    if (head.ndc) defines.NDC = 1;
    if (look.mode === "transfer" && look.shading) defines.LIT = 1;
    if (counts) defines.COUNT = 1;
    return this.linked(marchSource(defines));
  }

  linked(source) {
    const { gl } = this;
    const known = this.programs.get(source);
    if (known) return known;
    const program = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, EVERYWHERE],
      [gl.FRAGMENT_SHADER, source],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "a_corner");
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
      const said = gl.getAttachedShaders(program).map((shader) => gl.getShaderInfoLog(shader));
      throw new Error(`the GPU's driver refuses the shader: ${said.concat(gl.getProgramInfoLog(program)).join(" ").slice(0, 400)}`);
    }
    const places = new Map();
    const made = { program, at: (name) => places.get(name) ?? (places.set(name, gl.getUniformLocation(program, name)), places.get(name)) };
    this.programs.set(source, made);
    return made;
  }

  // What the rays of a picture of `width` x `height` pixels are drawn on.
  target(width, height) {
    const { gl } = this;
    if (this.drawn && this.drawn.width === width && this.drawn.height === height) return this.drawn;
    if (this.drawn) {
      gl.deleteTexture(this.drawn.texture);
      gl.deleteFramebuffer(this.drawn.frame);
    }
    const texture = this.texture2D(8, gl.RGBA8, width, height, gl.RGBA, gl.UNSIGNED_BYTE, null, gl.LINEAR);
    const frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    this.drawn = { width, height, texture, frame };
    return this.drawn;
  }

  // Marches the rays of a camera, `columns` x `rows` of them, or of the rows from `first` to `end` alone.
  march(camera, columns, rows, { first = 0, end = rows, counts = false, quick = EXACT } = {}) {
    const { gl, head, look } = this;
    const target = this.target(columns, rows);
    const { program, at } = this.program(counts);
    gl.useProgram(program);
    const textures = [...this.atlas.map((one, i) => [i, gl.TEXTURE_3D, one]), [4, gl.TEXTURE_3D, this.table], [5, gl.TEXTURE_3D, this.cells], [6, gl.TEXTURE_2D, this.rangeTexture]];
    if (this.knots) textures.push([7, gl.TEXTURE_2D, this.knots]);
    for (const [unit, kind, texture] of textures) {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(kind, texture);
    }
    ["u_first", "u_second", "u_third", "u_fourth", "u_table", "u_cells", "u_ranges", "u_knots"].forEach((name, unit) =>
      gl.uniform1i(at(name), unit),
    );
    this.putVolume(at);
    this.putCamera(at, camera, columns, rows);
    this.putRay(at, quick);
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
    gl.viewport(0, 0, columns, rows);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(0, first, columns, end - first);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.disable(gl.SCISSOR_TEST);
  }

  putVolume(at) {
    const { gl, head } = this;
    const side = BRICK_SIDE;
    gl.uniform3iv(at("u_grid"), this.grid);
    gl.uniform3fv(at("u_perTexel"), this.grid.map((n) => 1 / (n * side)));
    gl.uniform1i(at("u_bricks"), Math.max(head.count, 1));
    gl.uniform3fv(at("u_top"), head.shape.map((n) => n - 1));
    gl.uniform3iv(at("u_bricksAlong"), head.bricks);
    gl.uniform3iv(at("u_cellsAlong"), head.bricks.map((n) => 2 * n));
    gl.uniform1f(at("u_empty"), head.empty);
    gl.uniform4fv(at("u_fromWorld[0]"), head.indexFromWorld.slice(0, 12));
    if (head.ndc) gl.uniform4fv(at("u_ndc[0]"), head.ndc);
    gl.uniform1f(at("u_shift"), head.activation.shift);
    gl.uniform1f(at("u_inverseScale"), 1 / head.activation.scale);
  }

  putCamera(at, camera, columns, rows) {
    const { gl } = this;
    const m = camera.pose;
    gl.uniform3f(at("u_right"), m[0], m[4], m[8]);
    gl.uniform3f(at("u_up"), m[1], m[5], m[9]);
    gl.uniform3f(at("u_back"), m[2], m[6], m[10]);
    gl.uniform3f(at("u_eye"), m[3], m[7], m[11]);
    gl.uniform4f(at("u_lens"), ...camera.focal, ...camera.principal);
    gl.uniform1f(at("u_parallel"), camera.parallel ? 1 : 0);
    gl.uniform2f(at("u_pixel"), camera.width / columns, camera.height / rows);
    gl.uniform1f(at("u_rows"), rows);
  }

  putRay(at, quick) {
    const { gl, head, look } = this;
    gl.uniform1f(at("u_dt"), (look.step ?? 0.5) * quick.step * head.voxel);
    gl.uniform1f(at("u_minT"), Math.max(look.minTransmittance ?? 1e-4, quick.transmittance));
    gl.uniform1f(at("u_minWeight"), Math.max(look.minWeight ?? 1e-6, quick.weight));
    gl.uniform1f(at("u_exposure"), look.exposure ?? 1);
    gl.uniform1f(at("u_masked"), look.masked ? 1 : 0);
    gl.uniform3fv(at("u_background"), look.background);
    const planes = (look.planes ?? []).slice(0, MAX_PLANES);
    gl.uniform1i(at("u_planeCount"), planes.length);
    if (planes.length) gl.uniform4fv(at("u_planes[0]"), planes.flatMap((plane) => planeInPlace(plane, head)));
    gl.uniform2fv(at("u_window"), look.window ?? [0, 1]);
    if (look.table) {
      const { values, unitLength } = look.table;
      gl.uniform4f(at("u_place"), values[0], values[values.length - 1] - values[0], 1 / unitLength, 0);
    }
    if (look.mode === "isosurface") gl.uniform1f(at("u_level"), rawOfValue(look.iso, head.activation));
    const light = look.shading ?? { ambient: 1, diffuse: 0, specular: 0, shininess: 1, lamp: null, colour: null, smooth: true };
    gl.uniform4f(at("u_light"), light.ambient, light.diffuse, light.specular, light.shininess);
    gl.uniform4f(at("u_lamp"), ...(light.lamp ?? [0, 0, 1]), light.lamp ? 0 : 1);
    gl.uniform4f(at("u_paint"), ...(light.colour ?? [0, 0, 0]), light.colour ? 1 : 0);
    gl.uniform1f(at("u_smooth"), light.smooth ? 1 : 0);
  }

  // The mean of what was marched, `side` rays along the edge of a pixel, on the canvas or a frame.
  resolve(width, height, side, frame = null) {
    const { gl, drawn } = this;
    const { program, at } = this.linked(RESOLVE);
    gl.useProgram(program);
    gl.activeTexture(gl.TEXTURE8);
    gl.bindTexture(gl.TEXTURE_2D, drawn.texture);
    gl.uniform1i(at("u_drawn"), 8);
    gl.uniform1i(at("u_side"), side);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.viewport(0, 0, width, height);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  // Makes the canvas as large as a picture, which clears it, where it is not.
  fit(width, height) {
    const { canvas } = this;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  }

  // Draws what a camera sees, a `share` of its size a side, on a canvas as small, which is stretched by who shows it.
  draw(camera, share = 1, quick = EXACT) {
    const [width, height] = [camera.width, camera.height].map((n) => Math.max(Math.round(n * share), 1));
    this.march(camera, width, height, { quick });
    this.show(width, height, 1);
  }

  // How much of what lies behind is covered, of few rays: { width, height, bytes }, rows from the top.
  cover(camera, width) {
    const height = Math.max(Math.round((width * camera.height) / camera.width), 1);
    this.march(camera, width, height, { quick: quickSteps(4) });
    const data = this.read(width, height);
    return { width, height, bytes: Uint8Array.from({ length: width * height }, (_, i) => data[4 * i + 3]) };
  }

  // Shows what was marched on the canvas.
  show(width, height, side) {
    this.fit(width, height);
    this.resolve(width, height, side);
  }

  // Exactly what a camera sees, at its size and with `side` rays along a pixel's edge: { width, height, data }, rows
  // from the top, RGBA. The canvas stays as it is.
  picture(camera, side = this.head.supersample ?? 1) {
    const { gl } = this;
    const { width, height } = camera;
    this.march(camera, width * side, height * side);
    const texture = this.texture2D(9, gl.RGBA8, width, height, gl.RGBA, gl.UNSIGNED_BYTE, null);
    const frame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    this.resolve(width, height, side, frame);
    const data = this.read(width, height);
    gl.deleteFramebuffer(frame);
    gl.deleteTexture(texture);
    return { width, height, data };
  }

  // Mean and most texture reads of a ray of a camera, of a few thousand.
  readsOfRays(camera) {
    const columns = 80;
    const rows = Math.max(Math.round((columns * camera.height) / camera.width), 1);
    this.march(camera, columns, rows, { counts: true });
    const data = this.read(columns, rows);
    let [sum, most] = [0, 0];
    for (let i = 0; i < data.length; i += 4) {
      const reads = 256 * data[i] + data[i + 1];
      sum += reads;
      most = Math.max(most, reads);
    }
    return { mean: sum / (columns * rows), most };
  }

  // Pixels of the frame that is bound, rows from the top.
  read(width, height) {
    const { gl } = this;
    const upside = new Uint8ClampedArray(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(upside.buffer));
    const data = new Uint8ClampedArray(upside.length);
    for (let y = 0; y < height; y++)
      data.set(upside.subarray(4 * width * (height - 1 - y), 4 * width * (height - y)), 4 * width * y);
    return data;
  }

  // Resolves, true, when what was drawn so far is done; false where the context was lost.
  async finished() {
    const { gl } = this;
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (!fence) return false;
    gl.flush();
    while (!gl.isContextLost()) {
      const state = gl.clientWaitSync(fence, 0, 0);
      if (state === gl.ALREADY_SIGNALED || state === gl.CONDITION_SATISFIED) break;
      await new Promise((next) => setTimeout(next, 2));
    }
    gl.deleteSync(fence);
    return !gl.isContextLost();
  }
}

// Bricks along the axes of an atlas of `count`, at most `most` along each.
function atlasGrid(count, most) {
  const x = Math.min(Math.max(Math.ceil(Math.cbrt(count)), 1), most);
  const y = Math.min(Math.max(Math.ceil(Math.sqrt(count / x)), 1), most);
  const z = Math.max(Math.ceil(count / (x * y)), 1);
  if (z > most) throw new Error(`the volume has ${count} bricks, more than this GPU's textures hold; export it smaller`);
  return [x, y, z];
}

// One plane or four of the bricks from `first` on, into the layers of the atlas that hold a row of bricks in z.
function fillLayers(layers, planes, first, count, grid) {
  const side = BRICK_SIDE;
  const width = grid[0] * side;
  const layer = width * grid[1] * side;
  const [red, green, blue, alpha] = planes;
  for (let b = 0; b < grid[0] * grid[1] && first + b < count; b++) {
    const corner = (b % grid[0]) * side + Math.floor(b / grid[0]) * side * width;
    let from = (first + b) * side ** 3;
    for (let z = 0; z < side; z++)
      for (let y = 0; y < side; y++) {
        let to = corner + z * layer + y * width;
        if (planes.length === 1) {
          layers.set(red.subarray(from, from + side), to);
          from += side;
          continue;
        }
        to *= 4;
        for (let x = 0; x < side; x++, from++, to += 4) {
          layers[to] = red[from];
          layers[to + 1] = green[from];
          layers[to + 2] = blue[from];
          layers[to + 3] = alpha[from];
        }
      }
  }
}

// Least and greatest raw density of each cell of 4^3, box by box: { low, high }; of cells without a brick, empty.
function cellRanges({ head, table, ranges, planes }) {
  const [bx, by, bz] = head.bricks;
  const [x, y] = [2 * bx, 2 * by];
  const low = new Float32Array(8 * bx * by * bz * head.boxes).fill(head.empty);
  const high = low.slice();
  const side = BRICK_SIDE;
  const bytes = planes[0];
  for (let i = 0; i < table.length; i++) {
    if (!table[i]) continue;
    const entry = table[i] - 1;
    const [least, span] = ranges.subarray(2 * head.channels * entry, 2 * head.channels * entry + 2);
    const [a, b, c] = [i % bx, Math.floor(i / bx) % by, Math.floor(i / (bx * by))];
    for (let part = 0; part < 8; part++) {
      const [u, v, w] = [part & 1, (part >> 1) & 1, part >> 2];
      let [from, to] = [255, 0];
      if (entry >= head.count) from = 0;
      else
        for (let z = 4 * w; z <= 4 * w + 4; z++)
          for (let yy = 4 * v; yy <= 4 * v + 4; yy++) {
            const at = entry * side ** 3 + (z * side + yy) * side + 4 * u;
            for (let xx = at; xx <= at + 4; xx++) {
              if (bytes[xx] < from) from = bytes[xx];
              if (bytes[xx] > to) to = bytes[xx];
            }
          }
      const cell = 2 * a + u + x * (2 * b + v + y * (2 * c + w));
      low[cell] = least + (span * from) / 255;
      high[cell] = least + (span * to) / 255;
    }
  }
  return { low, high };
}

// What of a look decides which cells are seen.
function seenKey(look, leaps) {
  const { mode, table, iso, window } = look;
  const own = { transfer: table, isosurface: iso, maximum: window?.[0], minimum: window?.[1] }[mode];
  return JSON.stringify([leaps, ["emission-absorption", "additive", "x-ray", "average"].includes(mode) ? "thin" : mode, own ?? null]);
}

// Whether something is seen in each cell.
function seenCells({ low, high }, head, look) {
  const { activation, least } = head;
  const value = (raw) => valueOfRaw(raw, activation);
  const seen = new Uint8Array(low.length);
  let test = (i) => value(high[i]) > least || value(low[i]) < -least;
  if (look.mode === "transfer" && look.table) {
    const clear = clearTest(look.table);
    test = (i) => !clear(value(low[i]), value(high[i]));
  } else if (look.mode === "isosurface") {
    const level = rawOfValue(look.iso, activation);
    test = (i) => low[i] < level && high[i] >= level;
  } else if (look.mode === "maximum") test = (i) => value(high[i]) > look.window[0];
  else if (look.mode === "minimum") test = (i) => value(low[i]) < look.window[1];
  for (let i = 0; i < seen.length; i++) seen[i] = test(i) ? 1 : 0;
  return seen;
}

// Whether all values from one to another have an opacity of 0.
function clearTest({ values, rgba }) {
  const opacity = (value) => interpolateTable(values, rgba, value)[3];
  return (from, to) => {
    if (opacity(from) > 0 || opacity(to) > 0) return false;
    for (let k = 0; k < values.length; k++) if (rgba[k][3] > 0 && values[k] >= from && values[k] <= to) return false;
    return true;
  };
}

// Chessboard distance of each cell to the nearest that is seen, 0 there, at most 255 (axis by axis).
function chessboardDistance(seen, [x, y, z]) {
  const far = 255;
  let now = seen.map((on) => (on ? 0 : far));
  // Along one axis: the least over all others there of the greater of their distance and how far off they are.
  const pass = (count, stride, lines) => {
    const next = new Uint8Array(now.length);
    const line = new Uint8Array(count);
    for (const start of lines) {
      for (let i = 0; i < count; i++) line[i] = now[start + i * stride];
      for (let i = 0; i < count; i++) {
        let best = line[i];
        for (let off = 1; off < best && (i - off >= 0 || i + off < count); off++) {
          const there = Math.min(i >= off ? line[i - off] : far, i + off < count ? line[i + off] : far);
          best = Math.min(best, Math.max(there, off));
        }
        next[start + i * stride] = best;
      }
    }
    now = next;
  };
  const starts = (a, sa, b, sb) => {
    const all = [];
    for (let j = 0; j < b; j++) for (let i = 0; i < a; i++) all.push(i * sa + j * sb);
    return all;
  };
  pass(x, 1, starts(y, x, z, x * y));
  pass(y, x, starts(x, 1, z, x * y));
  pass(z, x * y, starts(x, 1, y, x));
  return now;
}

// --- Values and tables ---

function valueOfRaw(raw, { density, shift, scale }) {
  const x = raw + shift;
  const forward = {
    softplus: () => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
    relu: () => Math.max(x, 0),
    exponential: () => Math.exp(Math.min(x, 15)),
    identity: () => x,
  };
  return forward[density]() / scale;
}

function rawOfValue(value, { density, shift, scale }) {
  const y = value * scale;
  const positive = Math.max(y, 1e-30);
  const inverse = {
    softplus: () => positive + Math.log(-Math.expm1(-positive)),
    relu: () => Math.max(y, 0),
    exponential: () => Math.log(positive),
    identity: () => y,
  };
  return inverse[density]() - shift;
}

function interpolateTable(values, rgba, value) {
  if (value <= values[0]) return rgba[0];
  const last = values.length - 1;
  if (value >= values[last]) return rgba[last];
  let [i, j] = [0, last];
  while (j - i > 1) {
    const middle = (i + j) >> 1;
    if (values[middle] <= value) i = middle;
    else j = middle;
  }
  const share = (value - values[i]) / (values[j] - values[i]);
  return rgba[i].map((low, c) => low + share * (rgba[j][c] - low));
}

function tableTexels({ values, rgba }) {
  const texels = new Float32Array(4 * TABLE_TEXELS);
  const [first, last] = [values[0], values[values.length - 1]];
  for (let i = 0; i < TABLE_TEXELS; i++)
    texels.set(interpolateTable(values, rgba, first + ((last - first) * i) / (TABLE_TEXELS - 1)), 4 * i);
  return texels;
}

// Error of one line for a table that is none.
function requireTable({ values, rgba, unitLength }) {
  const numbers = [...values, ...rgba.flat(), unitLength];
  const wrong = numbers.find((one) => !Number.isFinite(one));
  if (wrong !== undefined) throw new Error(`the table has ${wrong}, want numbers; take that knot out, or give it one`);
  if (values.some((value, k) => k && !(value > values[k - 1]))) throw new Error("the table's values do not rise; sort its knots");
  if (rgba.length !== values.length || values.length < 2) throw new Error("the table has too few knots; give two or more, each with a colour and an opacity");
  if (!(unitLength > 0)) throw new Error(`the table's length is ${unitLength}; give one over 0`);
}

// A plane of the world where rays are marched: in NDC it is another.
function planeInPlace([a, b, c, offset], head) {
  if (!head.ndc) return [a, b, c, offset];
  const m = head.worldFromNdc;
  const row = [0, 1, 2, 3].map((j) => a * m[j] + b * m[4 + j] + c * m[8 + j] - offset * m[12 + j]);
  const size = Math.hypot(row[0], row[1], row[2]);
  return [row[0] / size, row[1] / size, row[2] / size, -row[3] / size];
}

// --- What a page holds ---

// { head, table, ranges, planes } of a record and of its packed bytes. Throws where they cannot be read.
async function unpackVolume(head, packed) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser cannot unpack the volume (it has no DecompressionStream); one of 2023 or later can");
  const bytes = await inflate(packed);
  const size = BRICK_SIDE ** 3;
  const count = head.bricks[0] * head.bricks[1] * head.bricks[2] * head.boxes;
  const want = 4 * count + 8 * head.channels * head.entries + head.channels * head.count * size;
  if (bytes.length !== want) throw new Error(`the page is damaged: ${bytes.length} bytes of the volume, want ${want}; write it again`);
  const table = new Uint32Array(bytes.buffer, 0, count);
  const ranges = new Float32Array(bytes.buffer, 4 * count, 2 * head.channels * head.entries);
  const first = 4 * count + 8 * head.channels * head.entries;
  const planes = [];
  for (let c = 0; c < head.channels; c++) {
    const plane = bytes.subarray(first + c * head.count * size, first + (c + 1) * head.count * size);
    for (let start = 0; start < plane.length; start += size)
      for (let i = start + 1, sum = plane[start]; i < start + size; i++) plane[i] = sum = (sum + plane[i]) & 255;
    planes.push(plane);
  }
  return { head, table, ranges, planes };
}

function bytesOfText(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const plain = atob(text.trim());
  const bytes = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i++) bytes[i] = plain.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
