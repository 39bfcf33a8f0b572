// Solids in space: meshes of bodies, boxes and round links, lighter where they face the light.
const light = () => unit(add(add(scaled(eye.out, .8), eye.up, .5), eye.right, -.3));
const shade = (base, s) => blend(blend("#10141c", base, .4 + .6 * s), "#ffffff", .3 * s * s);
const meshes = data.bodies.map(b => {
  const look = content.looks[b.name];
  if (!look) return null;
  const faces = [];
  for (let i = 0; i < look.faces.length; i += 3) {
    const [p, q, r] = [0, 1, 2].map(k => look.points[look.faces[i + k]]);
    faces.push({ corners: [p, q, r], normal: unit(cross(add(q, p, -1), add(r, p, -1))), middle: middle([p, q, r]) });
  }
  return faces;
});
const drawFace = (list, color) => {
  ctx.lineJoin = "round";
  ctx.beginPath();
  trace(list, true);
  ctx.fillStyle = color;
  ctx.fill();
  stroke(color, .7);  // no seams
};
const drawMesh = (faces, k, X) => {
  const from = light(), base = paint.body(k);
  for (const face of faces) {
    const n = turned(X, face.normal), out = dot(n, eye.out);
    if (out <= 0) continue;
    const list = face.corners.map(p => placed(X, p)), color = shade(base, Math.max(dot(n, from), 0));
    item(1, placed(X, face.middle), () => drawFace(list, color));
  }
};
const drawRound = (p, q, width, base) => {  // a round link: dark at its edges, light along a line
  const [a, b] = [seen(p), seen(q)], length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
  const side = [-(b[1] - a[1]) / length, (b[0] - a[0]) / length], up = side[1] > 0 ? -1 : 1;
  for (const [part, s, shift] of [[1, .12, 0], [.84, .45, .05], [.5, .8, .14], [.18, 1, .18]]) {
    const d = up * shift * width;
    ctx.beginPath();
    ctx.moveTo(a[0] + d * side[0], a[1] + d * side[1]);
    ctx.lineTo(b[0] + d * side[0], b[1] + d * side[1]);
    stroke(shade(base, s), Math.max(part * width, 1));
  }
};
