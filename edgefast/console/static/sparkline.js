// Sparkline: the last two minutes of one number, as a line without axes.

import { svg } from './dom.js';

const MOST = 60;
const WIDTH = 120;
const HEIGHT = 34;

export class Sparkline {
  constructor() {
    this.values = [];
    this.area = svg('path', { class: 'area' });
    this.line = svg('path', { class: 'line' });
    this.element = svg('svg', { class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, this.area, this.line);
  }

  clear() {
    this.values = [];
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > MOST) this.values.shift();
    const top = Math.max(...this.values, 1e-9);
    const step = WIDTH / (MOST - 1);
    const start = WIDTH - step * (this.values.length - 1);
    const points = this.values.map((one, at) => `${(start + step * at).toFixed(1)},${(HEIGHT - 2 - (one / top) * (HEIGHT - 5)).toFixed(1)}`);
    if (points.length < 2) return;
    const line = `M${points.join('L')}`;
    this.line.setAttribute('d', line);
    this.area.setAttribute('d', `${line}L${WIDTH},${HEIGHT}L${start.toFixed(1)},${HEIGHT}Z`);
  }
}
