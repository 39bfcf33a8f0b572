// Saving: the motion as a GIF, written here, or as a video, where the browser can record one.
const frameCanvas = () => {  // the stage on its background, of even size
  const k = Math.min(1, 640 / W), c = document.createElement("canvas");
  c.width = 2 * Math.round(W * k / 2); c.height = 2 * Math.round(H * k / 2);
  return c;
};
const copyStage = c => {
  const g = c.getContext("2d", { willReadFrequently: true });
  g.fillStyle = paint.card; g.fillRect(0, 0, c.width, c.height);
  g.drawImage(canvas, 0, 0, c.width, c.height);
  g.font = "600 12px system-ui, sans-serif"; g.textBaseline = "top"; g.fillStyle = paint.ink;
  g.textAlign = "left"; g.fillText(content.title, 8, 8, c.width - 120);
  g.textAlign = "right"; g.fillText(clockWords(), c.width - 8, 8);
  return g;
};
const palette = frames => {  // the colors that are there most often
  const bins = new Map();
  for (const d of frames) for (let i = 0; i < d.length; i += 4) {
    const key = d[i] >> 3 << 10 | d[i + 1] >> 3 << 5 | d[i + 2] >> 3, bin = bins.get(key) || [0, 0, 0, 0];
    bin[0]++; bin[1] += d[i]; bin[2] += d[i + 1]; bin[3] += d[i + 2];
    bins.set(key, bin);
  }
  const most = [...bins.values()].sort((a, b) => b[0] - a[0]).slice(0, 256);
  return most.map(([n, r, g, b]) => [r / n, g / n, b / n].map(Math.round));
};
const matcher = colors => {
  const known = new Map();
  return (r, g, b) => {
    const key = r >> 3 << 10 | g >> 3 << 5 | b >> 3;
    if (!known.has(key)) {
      let best = 0, least = Infinity;
      colors.forEach((c, k) => {
        const d = (c[0] - r) ** 2 + (c[1] - g) ** 2 + (c[2] - b) ** 2;
        if (d < least) { least = d; best = k }
      });
      known.set(key, best);
    }
    return known.get(key);
  };
};
const compressed = pixels => {  // LZW with codes of 9 to 12 bits, in blocks of at most 255 bytes
  const bytes = []; let bits = 0, held = 0, size = 9, next = 258, table = new Map(), code = pixels[0];
  const put = value => {
    held |= value << bits; bits += size;
    while (bits >= 8) { bytes.push(held & 255); held >>= 8; bits -= 8 }
  };
  put(256);
  for (let i = 1; i < pixels.length; i++) {
    const key = code << 8 | pixels[i], found = table.get(key);
    if (found !== undefined) { code = found; continue }
    put(code);
    if (next < 4096) {
      table.set(key, next);
      if (next++ === 1 << size) size++;
    } else { put(256); table = new Map(); size = 9; next = 258 }
    code = pixels[i];
  }
  put(code);
  if (next === 1 << size && size < 12) size++;
  put(257);
  if (bits) bytes.push(held & 255);
  const blocks = [8];
  for (let i = 0; i < bytes.length; i += 255) {
    const some = bytes.slice(i, i + 255);
    blocks.push(some.length, ...some);
  }
  return [...blocks, 0];
};
const gif = (frames, width, height, delay) => {
  const colors = palette(frames.filter((_, i) => i % Math.ceil(frames.length / 8) === 0)), match = matcher(colors);
  const word = x => [x & 255, x >> 8], letters = s => [...s].map(c => c.charCodeAt(0));
  const parts = [letters("GIF89a"), word(width), word(height), [0xf7, 0, 0]];
  for (let k = 0; k < 256; k++) parts.push(colors[k] || [0, 0, 0]);
  parts.push([0x21, 0xff, 11], letters("NETSCAPE2.0"), [3, 1, 0, 0, 0]);
  for (const d of frames) {
    const pixels = new Uint8Array(width * height);
    for (let i = 0; i < pixels.length; i++) pixels[i] = match(d[4 * i], d[4 * i + 1], d[4 * i + 2]);
    parts.push([0x21, 0xf9, 4, 4], word(delay), [0, 0, 0x2c, 0, 0, 0, 0], word(width), word(height), [0]);
    parts.push(compressed(pixels));
  }
  return new Blob([...parts, [0x3b]].map(x => Uint8Array.from(x)), { type: "image/gif" });
};
const offer = (blob, kind) => {
  const link = document.createElement("a"), address = URL.createObjectURL(blob);
  link.setAttribute("href", address);
  link.download = (content.title.replace(/[^\w-]+/g, "_").replace(/^_+|_+$/g, "") || "motion") + "." + kind;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
const busy = (id, says) => { $(id).disabled = Boolean(says); $(id).textContent = says || $(id).dataset.label };
const pausing = () => new Promise(done => setTimeout(done));
const saveGif = async () => {
  const c = frameCanvas(), kept = now, lasts = Math.min(span / speed, 12), n = Math.max(2, Math.round(15 * lasts));
  const frames = [];
  pause();
  for (let k = 0; k < n; k++) {
    now = start + span * k / n;
    drawStage();
    frames.push(copyStage(c).getImageData(0, 0, c.width, c.height).data);
    if (k % 8 === 0) { busy("gif", `${Math.round(100 * k / n)} %`); await pausing() }
  }
  jump(kept);
  offer(gif(frames, c.width, c.height, Math.round(100 * lasts / n)), "gif");
  busy("gif", "");
};
const video = window.MediaRecorder && ["video/mp4", "video/webm"].find(kind => MediaRecorder.isTypeSupported(kind));
const saveVideo = () => {  // one pass, as fast as it is played
  const c = frameCanvas(), recorder = new MediaRecorder(c.captureStream(30), { mimeType: video }), found = [];
  recorder.ondataavailable = e => found.push(e.data);
  recorder.onstop = () => { offer(new Blob(found, { type: video }), video.slice(6)); busy("video", "") };
  const again = loop, until = finish - 1e-6 * span;
  const follow = () => {
    copyStage(c);
    if (playing && now < until && !life.signal.aborted) requestAnimationFrame(follow);
    else { loop = again; recorder.stop() }
  };
  loop = false; jump(start); show(); recorder.start(); play(); follow(); busy("video", "…");
};
for (const [id, save] of [["gif", saveGif], ["video", saveVideo]]) { busy(id, ""); on($(id), "click", save) }
$("video").hidden = !video;
