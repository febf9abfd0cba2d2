// Numbers and times as people read them. A value that is not known is a dash.

const DASH = '–';
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Requests per second. */
export function rate(value) {
  if (value === null || value === undefined) return DASH;
  if (value === 0) return '0';
  if (value >= 10000) return `${(value / 1000).toFixed(value >= 100000 ? 0 : 1)}k`;
  if (value >= 100) return whole.format(value);
  return value >= 0.1 ? value.toFixed(1) : '<0.1';
}

/** A share between 0 and 1. */
export function share(value) {
  if (value === null || value === undefined) return DASH;
  if (value === 0) return '0 %';
  const percent = value * 100;
  if (percent < 0.01) return '<0.01 %';
  return `${percent >= 10 ? percent.toFixed(0) : percent.toFixed(percent >= 1 ? 1 : 2)} %`;
}

/** Milliseconds; `most` is the last bound of the histogram: what is there may be any longer. */
export function time(value, most) {
  if (value === null || value === undefined) return DASH;
  if (most && value >= most) return `>${most / 1000} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10000 ? 0 : 1)} s`;
  if (value >= 10) return `${value.toFixed(0)} ms`;
  return `${value.toFixed(value >= 1 ? 1 : 2)} ms`;
}

/** A setting in milliseconds, as it was meant: "15 s". */
export function duration(value) {
  for (const [size, name] of [[3600000, 'h'], [60000, 'min'], [1000, 's']]) if (value >= size && value % size === 0) return `${value / size} ${name}`;
  return `${value} ms`;
}

/** A count. */
export function count(value) {
  return value === null || value === undefined ? DASH : whole.format(value);
}

/** "1 rule", "12 rules". */
export function some(value, one, many) {
  return `${count(value)} ${value === 1 ? one : many || `${one}s`}`;
}

/** How long ago, from seconds. */
export function age(seconds) {
  if (!Number.isFinite(seconds)) return DASH;
  const passed = Math.max(0, seconds);
  if (passed < 60) return `${Math.floor(passed)} s`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 172800) return `${Math.floor(passed / 3600)} h`;
  return `${Math.floor(passed / 86400)} d`;
}

/** A moment, from Unix seconds, in the reader's time zone. */
export function moment(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString('en-GB') : DASH;
}

/** A version as far as people compare it. */
export const short = (version) => (version ? version.slice(0, 8) : DASH);

/** How bad a share of errors is. */
export function grade(value) {
  if (!value) return '';
  return value >= 0.05 ? 'bad' : value >= 0.005 ? 'warn' : '';
}
