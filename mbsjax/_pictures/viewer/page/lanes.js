// Lanes: which of several motions is shown, chosen from a list or by a slider.
let lane = 0, shows = null;
const choose = k => {
  lane = Math.min(Math.max(Math.round(k), 0), lanes.length - 1);
  const was = shows ? shows.leave() : {};
  shows = open(lanes[lane], was);
  $("lane").value = lane; $("over").value = lane;
  $("laneName").textContent = content.names[lane] ?? "";
};
content.names.forEach((name, k) => $("lane").append(new Option(name, k)));
$("lanes").hidden = lanes.length < 2;
$("over").max = lanes.length - 1;
$("over").hidden = $("laneName").hidden = !content.over;
$("lane").hidden = Boolean(content.over);
$("overName").textContent = content.over || "variant";
$("lane").addEventListener("change", e => choose(+e.target.value));
$("over").addEventListener("input", e => choose(+e.target.value));
choose(0);
