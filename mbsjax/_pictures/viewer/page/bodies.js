// Bodies.
const drawBody = (b, k, X) => {
  const color = paint.body(k), fill = paint.bodyFill(k), here = list => list.map(p => placed(X, p));
  const solid = b.outlines.filter(o => o.solid).map(o => here(o.points));
  const holes = b.outlines.filter(o => o.closed && !o.solid);
  const open = b.outlines.filter(o => !o.closed);
  if (meshes[k]) drawMesh(meshes[k], k, X);
  else for (const line of b.lines) {
    const ends = here(line), width = Math.min(Math.max(.022 * size * view.scale, 3), 11);
    const n = data.planar ? 1 : 8, at = s => ends[0].map((x, m) => mix(x, ends[ends.length - 1][m], s));
    for (let m = 0; m < n; m++) {  // in space in pieces, so that what is in front of one end may be behind the other
      const piece = n === 1 ? ends : [at(m / n), at((m + 1) / n)];
      const more = n === 1 ? ends : [at(Math.max(m - .2, 0) / n), at(Math.min(m + 1.2, n) / n)];
      item(1, middle(piece), () => {
        if (!data.planar) { drawRound(more[0], more[1], 1.25 * width, color); return }
        ctx.lineCap = "round";
        polyline(piece, color, width); polyline(piece, fill, Math.max(width - 3, 1)); ctx.lineCap = "butt";
      });
    }
  }
  if (b.plate) {
    const list = here(b.plate), width = Math.min(Math.max(.022 * size * view.scale, 3), 11);
    item(1, middle(list), () => {
      ctx.lineJoin = "round";
      ctx.beginPath();
      trace(list, true);
      stroke(color, width);
      ctx.fillStyle = fill;
      ctx.fill();
      stroke(fill, Math.max(width - 3, 1));
    });
  }
  if (solid.length || holes.length) {
    const inner = holes.map(o => here(o.points)), all = [...solid, ...inner];
    item(2, middle(all.flat()), () => {
      ctx.lineJoin = "round";
      if (solid.length) {
        ctx.beginPath(); for (const list of all) trace(list, true);
        ctx.fillStyle = k ? fill : blend(paint.card, paint.ground, .18);
        ctx.globalAlpha = data.planar ? 1 : .8;
        ctx.fill("evenodd");
        ctx.globalAlpha = 1;
      } else for (const list of inner) {
        ctx.beginPath();
        trace(list, true);
        trace(band(list, true, .03 * size), true);
        ctx.fillStyle = fill;
        ctx.fill("evenodd");
      }
    });
    item(2.8, middle(all.flat()), () => {
      ctx.lineJoin = "round";
      ctx.beginPath();
      for (const list of all) trace(list, true);
      stroke(color, 1.7);
    });
  }
  for (const o of open) {
    const list = here(o.points), inside = data.planar ? band(list, false, .018 * size).reverse() : [];
    item(2, middle(list), () => {
      ctx.lineJoin = "round";
      if (k === 0) list.forEach((p, m) => { if (m) hatch(list[m - 1], p, 1, color) });
      else if (inside.length) { ctx.beginPath(); trace([...list, ...inside], true); ctx.fillStyle = fill; ctx.fill() }
    });
    item(2.8, middle(list), () => { ctx.lineJoin = "round"; polyline(list, color, 2.2) });
  }
  if (b.block && !meshes[k]) {
    const at = placed(X, b.block[0]), along = unit(turned(X, b.block[1])), a = .032 * size, h = .02 * size;
    const other = Math.abs(along[2]) < .9 ? [0, 0, 1] : [1, 0, 0];
    const across = data.planar ? [-along[1], along[0], 0] : unit(cross(along, other));
    if (data.planar) {
      const list = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([u, v]) => add(add(at, along, u * a), across, v * h));
      item(2, at, () => {
        ctx.lineJoin = "round";
        ctx.beginPath();
        trace(list, true);
        ctx.fillStyle = fill;
        ctx.fill();
        stroke(color, 1.7);
      });
    } else box(at, [scaled(along, a), scaled(across, h), scaled(cross(along, across), h)], color);
  }
  for (const [name, p] of b.points) {
    const at = placed(X, p);
    item(4, at, () => { disc(at, 3, color, paint.card, 1.2); if (shown.names) text(at, name, color) });
  }
};
const box = (at, [a, b, c], base) => {
  const from = light();
  for (const [u, v, w] of [[a, b, c], [b, c, a], [c, a, b]]) for (const side of [-1, 1]) {
    if (dot(eye.out, w) * side <= 0) continue;
    const list = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => add(add(add(at, w, side), u, x), v, y));
    const color = shade(base, Math.max(side * dot(unit(w), from), 0));
    item(2, middle(list), () => drawFace(list, color));
  }
};
