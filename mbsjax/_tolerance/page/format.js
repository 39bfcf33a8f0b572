// Numbers as they are read: five significant digits, all of them on demand.

function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const rounded = Number(x.toPrecision(5)), size = Math.abs(rounded);
  const given = Math.abs(size - Math.abs(x)) <= 1e-12 * size && size >= 1e-4 && size < 1e6; // not computed
  if (size === 0 || given) return String(rounded).replace("-", "−");
  const text = size < 1e-4 || size >= 1e6 ? x.toExponential(4).replace("e+", "e")
    : x.toFixed(Math.max(4 - Math.floor(Math.log10(size)), 0));
  return text.replace("-", "−");
}

// A yield in percent, with so many digits that its rejects are told by two.
function percent(x) {
  if (x === null || Number.isNaN(x)) return "–";
  const rest = Math.min(x, 1 - x);
  const digits = rest > 0 ? Math.min(Math.max(Math.ceil(-Math.log10(100 * rest)) + 1, 2), 10) : 2;
  return `${(100 * x).toFixed(digits)} %`;
}

const FORMATS = {
  number: short,
  yield: percent,
  part: (x) => `${(100 * x).toFixed(1).replace("-", "−")} %`,
  ppm: (x) => short(1e6 * x),
  text: String,
};
const WHOLE = { yield: (x) => `${100 * x} %`, part: (x) => `${100 * x} %`, ppm: (x) => `${1e6 * x}` };

// For inputs: what was given, without the noise of rounding.
const brief = (x) => (x !== 0 && Math.abs(x) < 1e-4 ? x.toExponential(3) : String(Number(x.toPrecision(5))));
const typed = (x) => (Number.isFinite(x) ? String(Number(x.toPrecision(12))) : "");
const signed = (x) => (x > 0 ? `+${typed(x)}` : typed(x));
const typedTolerance = ({ lower, upper }) =>
  lower === -upper ? `±${typed(upper)}` : `${signed(lower)} / ${signed(upper)}`;

// A number, with a decimal comma if that is what is used; NaN if it is none.
const parsed = (text) => {
  const plain = text.trim().replace(/[−–]/g, "-").replace(/^([+-]?\d*),(\d+)/, "$1.$2");
  return plain === "" ? NaN : Number(plain);
};

// The limits that a text stands for: "0.05" or "±0.05", or two numbers, "-0.02 / +0.05"; null if it is none.
function parsedTolerance(text, oneSided) {
  const plain = text.replace(/±|\+-/g, " ").trim(), parts = plain.split(/\s*[/;]\s*|,\s+|\s+/).filter((x) => x !== "");
  const given = parts.map(parsed);
  if (given.some((x) => !Number.isFinite(x))) return null;
  if (given.length === 1) return given[0] > 0 ? { lower: oneSided ? 0 : -given[0], upper: given[0] } : null;
  return given.length === 2 && given[0] < given[1] ? { lower: given[0], upper: given[1] } : null;
}
