// One line of the tree: made once, drawn again when what it says has changed.

import { fill, h, say } from './dom.js';
import { grade, rate, share, some, time } from './format.js';

const LETTERS = { gateway: 'G', listener: 'L', host: 'H', rule: 'R', backend: 'B' };
const WORDS = { gateway: 'Gateway', listener: 'Listener', host: 'Virtual host', rule: 'Rule', backend: 'Backend' };
const BELOW = { gateway: 'listener', listener: 'host', host: 'rule', rule: 'backend' };
const SHARED = 'These are the numbers of rules that serve other names too';

/** Make the elements of a line. */
export function makeRow() {
  const twist = h('span', { class: 'twist', 'aria-hidden': 'true' });
  const kind = h('span', { class: 'kind', 'aria-hidden': 'true' });
  const name = h('span', { class: 'name' });
  const tags = h('span', { class: 'tags' });
  const about = h('span', { class: 'about dim' });
  const marks = h('span', { class: 'marks' });
  const cells = ['rate', 'errors', 'p50', 'p99'].map((one) => h('span', { class: `cell ${one}` }));
  const element = h('div', { class: 'row', role: 'treeitem' },
    h('span', { class: 'label' }, twist, kind, name, tags, about, marks), ...cells);
  return { element, twist, kind, name, tags, about, marks, cells, drawn: '' };
}

/** Draw a line; `row` undefined: it is on its way. */
export function drawRow(line, row, level, opened, selected, shared) {
  const { element } = line;
  element.setAttribute('aria-selected', String(selected));
  if (row?.children) element.setAttribute('aria-expanded', String(opened));
  else element.removeAttribute('aria-expanded');
  const now = row ? JSON.stringify([row, level, opened]) : 'waiting';
  if (line.drawn === now) return;
  line.drawn = now;
  element.dataset.level = String(Math.min(level, 5));
  element.classList.toggle('waiting', !row);
  if (!row) {
    element.dataset.kind = '';
    [line.name, line.about, ...line.cells].forEach((one) => say(one, ''));
    return;
  }
  element.dataset.kind = row.kind;
  element.dataset.id = row.id;
  line.twist.dataset.state = !row.children ? 'none' : opened ? 'open' : 'closed';
  say(line.kind, LETTERS[row.kind]);
  line.kind.title = WORDS[row.kind];
  say(line.name, nameOf(row));
  line.name.title = nameOf(row);
  fill(line.tags, (row.tags || []).map((one) => h('span', { class: 'tag' }, one)));
  const below = row.children && row.kind !== 'rule' ? some(row.children, BELOW[row.kind]) : '';
  say(line.about, [row.about, below].filter(Boolean).join(' · '));
  line.about.title = row.about || '';
  fill(line.marks,
    row.errors && h('span', { class: 'mark', 'data-state': 'bad', title: some(row.errors, 'error') }, row.errors),
    row.warnings && h('span', { class: 'mark', 'data-state': 'warn', title: some(row.warnings, 'warning') }, row.warnings));
  drawNumbers(line.cells, row, shared);
}

function drawNumbers(cells, row, shared) {
  const [perSecond, errors, p50, p99] = cells;
  const now = row.rate;
  const quiet = now && !now.requests;
  cells.forEach((one) => one.classList.toggle('quiet', !now || quiet));
  if (row.kind === 'backend') {
    cells.forEach((one) => say(one, ''));
    return;
  }
  say(perSecond, now ? `${rate(now.requests || 0)}${row.shared && now.requests ? '*' : ''}` : rate(null));
  perSecond.title = row.shared ? SHARED : '';
  say(errors, quiet ? '' : now ? share(now.errors || 0) : '');
  errors.dataset.state = grade(now?.errors);
  say(p50, now?.p50 === undefined ? '' : time(now.p50, shared.bound()));
  say(p99, now?.p99 === undefined ? '' : time(now.p99, shared.bound()));
}

/** Return the name of a line as people say it. */
export function nameOf(row) {
  if (row.kind === 'host' && row.name === '*') return 'any host';
  if (row.kind === 'backend' && !row.name) return 'no backend';
  return row.name;
}

export { WORDS };
