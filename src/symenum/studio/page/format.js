// Numbers, times and counts as people read them.

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const NONE = "–";

/** A number with so many significant digits: 0.0123, 1,234, 4.2×10⁻⁹; a dash where there is none. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) {
    return value.toLocaleString("en", { maximumSignificantDigits: digits }).replace("-", "−");
  }
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return `${short.replace("-", "−")}×10${superscript(Number(exponent))}`;
}

/** A power's exponent in small raised digits. */
export function superscript(exponent) {
  return [...String(exponent)].map((sign) => SUPERSCRIPTS[sign]).join("");
}

/** A count in words from a million on: 12,345; 1.31 billion. */
export function count(value) {
  if (value === null || value === undefined) return NONE;
  for (const [size, word] of [[1e15, "quadrillion"], [1e12, "trillion"], [1e9, "billion"], [1e6, "million"]]) {
    if (value >= size) return `${(value / size).toLocaleString("en", { maximumSignificantDigits: 3 })} ${word}`;
  }
  return Math.round(value).toLocaleString("en");
}

/** A number of things with its noun: "1 row", "20 rows". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** A time span: 0.4 s, 45 s, 3 min 20 s, 2 h 5 min. */
export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value < 0.1) return `${value.toLocaleString("en", { maximumSignificantDigits: 1 })} s`;
  if (value < 10) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  const minutes = Math.round(whole / 60);
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

/** When something happened; takes ISO text or seconds since 1970. */
export function moment(value) {
  const date = typeof value === "number" ? new Date(value * 1000) : new Date(value ?? NaN);
  if (Number.isNaN(date.getTime())) return NONE;
  return date.toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** A share of one as a percentage. */
export function percent(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  return `${(100 * value).toLocaleString("en", { maximumSignificantDigits: 3 })}%`;
}

/** What a law of motion is one of: the rate of a state, or its acceleration where the laws are of second order. */
export function derivative(state, { settings }) {
  return settings?.order === 2 ? `d²${state}/dt²` : `d${state}/dt`;
}
