// Lists: limits, problems, workers or proxies. Each is a table, a page of it at a time, with a search of its own.

import { ask } from './api.js';
import { fill, h, say } from './dom.js';
import { count, rate, short } from './format.js';
import { aboutReasons } from './reason.js';

const PAGE = 100;
const WAIT = 150;

class List {
  constructor(shared, name, columns, words, nothing) {
    this.shared = shared;
    this.name = name;
    this.columns = columns;
    this.words = words;
    this.nothing = nothing;
    this.offset = 0;
    this.timer = 0;
    this.drawn = '';
  }

  build() {
    this.box = h('input', { type: 'search', placeholder: this.words, 'aria-label': this.words, autocomplete: 'off', spellcheck: 'false',
      on: { input: () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.restart(), WAIT); } } });
    this.total = h('span', { class: 'dim', role: 'status' });
    this.back = h('button', { type: 'button', on: { click: () => this.turn(-PAGE) } }, 'Previous');
    this.on = h('button', { type: 'button', on: { click: () => this.turn(PAGE) } }, 'Next');
    this.pages = h('span', { class: 'pages', hidden: true }, this.back, this.on);
    this.body = h('tbody');
    const heads = this.columns.map(([title, kind]) => h('th', { scope: 'col', class: kind || null }, title));
    this.table = h('table', { class: `grid grid-${this.name}` }, h('thead', {}, h('tr', {}, heads)), this.body);
    this.empty = h('p', { class: 'empty', hidden: true }, this.nothing);
    return [h('div', { class: 'bar' }, this.box, ...this.extras(), this.total, h('span', { class: 'gap' }), this.pages), h('div', { class: 'panel scroll' }, this.before(), this.table, this.empty)];
  }

  extras() {
    return [];
  }

  before() {
    return '';
  }

  query() {
    return {};
  }

  take() {}

  forget() {
    this.offset = 0;
    this.drawn = '';
  }

  enter() {
    this.refresh().catch(() => {});
  }

  restart() {
    this.offset = 0;
    this.refresh().catch(() => {});
  }

  turn(by) {
    this.offset = Math.max(0, this.offset + by);
    this.refresh().catch(() => {});
  }

  async refresh() {
    const told = await ask(this.name, { q: this.box.value.trim(), offset: this.offset, limit: PAGE, ...this.query() });
    if (!told) return;
    this.offset = told.offset >= told.total ? Math.max(0, told.offset - PAGE) : told.offset;
    const now = JSON.stringify(told);
    if (now === this.drawn) return;
    this.drawn = now;
    const last = told.offset + told.rows.length;
    say(this.total, told.total > told.rows.length ? `${count(told.offset + 1)} to ${count(last)} of ${count(told.total)}` : `${count(told.total)}`);
    this.pages.hidden = told.total <= PAGE;
    this.back.disabled = told.offset === 0;
    this.on.disabled = last >= told.total;
    this.table.hidden = !told.rows.length;
    this.empty.hidden = told.rows.length > 0;
    fill(this.body, told.rows.map((one) => label(this.row(one), this.columns.map(([title]) => title))));
  }
}

/** Say on each cell what column it is in: where there is no room for columns, that is its heading. */
function label(row, titles) {
  titles.forEach((title, at) => { row.children[at].dataset.label = title; });
  return row;
}

const dot = (state) => h('span', { class: 'dot', 'data-state': state, 'aria-hidden': 'true' });

export class Limits extends List {
  constructor(shared) {
    super(shared, 'limits', [['Limit'], ['Lets through'], ['Route'], ['Passed / s', 'number'], ['Refused / s', 'number'], ['Store failed / s', 'number']],
      'Search limits', 'No rule of the table has rate limits.');
    this.counters = new Counters();
  }

  extras() {
    this.counters.build();
    return [this.counters.button];
  }

  before() {
    return this.counters.box;
  }

  forget() {
    super.forget();
    fill(this.counters.box);
  }

  row(one) {
    return h('tr', {},
      h('th', { scope: 'row' }, one.name, one.shadow && h('span', { class: 'tag' }, 'shadow')), h('td', {}, one.said),
      h('td', {}, h('button', { type: 'button', class: 'link', on: { click: () => this.shared.open('routes', one.node) } }, `${one.route} rule ${one.rule}`)),
      h('td', { class: 'number' }, rate(one.passed)), h('td', { class: 'number', 'data-state': one.refused ? 'warn' : null }, rate(one.refused)),
      h('td', { class: 'number', 'data-state': one.failed ? 'bad' : null }, rate(one.failed)));
  }
}

/** Who is limited now: asked for once, when somebody wants to know. Values are what clients sent. */
class Counters {
  build() {
    this.button = h('button', { type: 'button', on: { click: () => this.show() } }, 'Who is limited now?');
    this.box = h('div', { class: 'counters' });
  }

  async show() {
    this.button.disabled = true;
    try {
      const told = await ask('counters', { limit: PAGE });
      if (told) this.draw(told);
    } catch (error) {
      fill(this.box, h('p', { class: 'empty' }, error.message));
    } finally {
      this.button.disabled = false;
    }
  }

  draw(told) {
    if (!told.rows.length) {
      fill(this.box, h('p', { class: 'empty' }, told.why_not || 'No counter exists: no request has been counted.'));
      return;
    }
    const titles = ['State', 'Limit', 'Route', 'Values', 'Used', 'Left', 'For'];
    const heads = titles.map((one, at) => h('th', { scope: 'col', class: at > 3 ? 'number' : null }, one));
    fill(this.box,
      h('table', { class: 'grid grid-counters' }, h('thead', {}, h('tr', {}, heads)), h('tbody', {}, told.rows.map((one) => label(h('tr', {},
        h('td', {}, h('span', { class: 'pill', 'data-state': one.limited ? (one.shadow ? 'warn' : 'bad') : 'good' }, one.limited ? (one.shadow ? 'shadow' : 'limited') : 'passes')),
        h('th', { scope: 'row' }, one.limit), h('td', {}, `${one.route} rule ${one.rule}`),
        h('td', { class: 'break' }, Object.entries(one.values).map(([name, value]) => `${name}=${value}`).join(', ')),
        h('td', { class: 'number' }, `${count(one.used)} of ${count(one.requests)}`), h('td', { class: 'number' }, count(one.remaining)), h('td', { class: 'number' }, `${one.reset} s`)), titles)))),
      told.total > told.rows.length ? h('p', { class: 'dim pad' }, `and ${count(told.total - told.rows.length)} more: edgefast limits lists them`) : null);
  }
}

export class Problems extends List {
  constructor(shared) {
    super(shared, 'problems', [['Severity'], ['Problem'], ['Where']], 'Search problems', 'No problem is known.');
  }

  extras() {
    this.severity = h('select', { 'aria-label': 'Severity', on: { change: () => this.restart() } },
      [['', 'All'], ['error', 'Errors'], ['warning', 'Warnings']].map(([value, text]) => h('option', { value }, text)));
    return [this.severity];
  }

  query() {
    return { severity: this.severity.value };
  }

  row(one) {
    const state = one.severity === 'error' ? 'bad' : 'warn';
    return h('tr', {}, h('td', {}, h('span', { class: 'pill', 'data-state': state }, one.severity)), h('td', { class: 'break' }, one.text, aboutReasons(one.reasons)),
      h('td', {}, one.source && h('code', { class: 'break' }, one.source), one.source && ' ',
        one.node && h('button', { type: 'button', class: 'link', on: { click: () => this.shared.open('routes', one.node) } }, 'show')));
  }
}

export class Members extends List {
  constructor(shared) {
    super(shared, 'members', [['Name'], ['State'], ['Table'], ['More']], 'Search', 'No members.');
    this.served = '';
  }

  before() {
    this.facts = h('dl', { class: 'facts' });
    return this.facts;
  }

  /** Take what the overview says of the process. */
  tell(told) {
    this.served = told.table.version;
    const now = JSON.stringify(told.facts.rows);
    if (this.facts.dataset.now === now) return;
    this.facts.dataset.now = now;
    fill(this.facts, told.facts.rows.map(([label, text]) => h('div', {}, h('dt', {}, label), h('dd', {}, text))));
  }

  row(one) {
    return h('tr', {},
      h('th', { scope: 'row' }, one.group && h('span', { class: 'dim' }, `${one.group} `), one.name),
      h('td', {}, dot(one.state || 'good'), one.said), h('td', {}, h('code', { title: one.version || '' }, short(one.version))),
      h('td', { class: 'dim' }, (one.facts || []).map(([label, text]) => `${label} ${text}`).join(', ')));
  }
}
