// Detail: everything about one line of the tree.

import { ask, Refusal } from './api.js';
import { fill, h } from './dom.js';
import { count, grade, rate, share, some, time } from './format.js';
import { aboutReasons } from './reason.js';
import { nameOf, WORDS } from './treerow.js';

export class Detail {
  constructor(shared, onOpen) {
    this.shared = shared;
    this.onOpen = onOpen;
    this.drawn = '';
    this.element = h('aside', { class: 'panel detail', 'aria-label': 'Details', tabindex: '0' });
    this.clear();
  }

  clear() {
    this.drawn = '';
    this.empty = true;
    fill(this.element, h('p', { class: 'empty' }, 'Choose a line to see what it does, what it answers and what is wrong with it.'));
  }

  /** Show what there is, as long as no line is chosen. */
  summarise({ counts, busiest }) {
    if (!this.empty) return;
    const now = JSON.stringify([counts, busiest]);
    if (now === this.drawn) return;
    this.drawn = now;
    const most = Math.max(...busiest.map((one) => one.rate?.requests || 0), 1e-9);
    fill(this.element,
      h('dl', { class: 'tally' }, Object.entries(counts).map(([name, value]) => h('div', {}, h('dd', {}, count(value)), h('dt', {}, name)))),
      busiest.length > 0 && h('section', { class: 'busiest' }, h('h3', {}, 'Busiest rules now'), busiest.map((one) => {
        const bar = h('span', { class: 'meter', 'aria-hidden': 'true' });
        bar.style.width = `${(100 * (one.rate?.requests || 0)) / most}%`;
        return h('button', { type: 'button', class: 'busy', on: { click: () => this.onOpen(one.id) } }, bar,
          h('span', { class: 'what' }, h('span', { class: 'name clip' }, one.name), h('span', { class: 'dim clip' }, one.about)),
          h('span', { class: 'cell' }, rate(one.rate?.requests || 0)), h('span', { class: 'cell', 'data-state': grade(one.rate?.errors) || null }, one.rate?.errors ? share(one.rate.errors) : ''));
      })),
      h('p', { class: 'dim' }, 'Choose a line to see what it does, what it answers and what is wrong with it.'));
  }

  /** Bring what is wrong with the line into sight. */
  showProblems() {
    this.element.querySelector('.problem')?.scrollIntoView({ block: 'nearest' });
  }

  /** Show a line; returns what was told of it, null when it is gone. */
  async show(id) {
    let told;
    try {
      told = await ask('node', { id }, 'detail');
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
      this.drawn = '';
      this.empty = false;
      fill(this.element, h('p', { class: 'empty' }, 'This line is not in the table any more.'));
      return null;
    }
    if (!told) return null;
    const now = JSON.stringify(told);
    this.empty = false;
    if (now !== this.drawn) {
      this.drawn = now;
      this.draw(told);
    }
    return told;
  }

  draw(told) {
    const { row, sections, problems } = told;
    const { scrollTop } = this.element;
    fill(this.element,
      h('nav', { class: 'crumbs dim', 'aria-label': 'Above it' }, told.path.slice(0, -1).map(([id, name]) => [
        h('button', { type: 'button', class: 'link', on: { click: () => this.onOpen(id) } }, name === '*' ? 'any host' : name), ' › '])),
      h('h2', {}, h('span', { class: 'kind', 'data-kind': row.kind, title: WORDS[row.kind] }, row.kind[0].toUpperCase()), h('span', { class: 'break' }, nameOf(row))),
      told.trial && h('button', { type: 'button', class: 'quiet-button', on: { click: () => this.shared.open('explain', told.trial) } }, 'Explain a request to it'),
      problems.map((one) => h('div', { class: 'problem', 'data-state': one.severity === 'error' ? 'bad' : 'warn' }, one.text, one.source && h('span', { class: 'dim' }, ` ${one.source}`), aboutReasons(one.reasons),
        one.node && one.node !== row.id && h('button', { type: 'button', class: 'link', on: { click: () => this.onOpen(one.node) } }, 'show'))),
      told.more_problems ? h('p', { class: 'dim' }, `and ${some(told.more_problems, 'more problem')}`) : null,
      this.shared.hasNumbers() && row.kind !== 'backend' && this.numbers(told),
      sections.map((one) => h('section', {}, h('h3', {}, one.title),
        one.lines.some(([label]) => label)
          ? h('dl', {}, one.lines.map(([label, text]) => [h('dt', {}, label), h('dd', {}, text)]))
          : h('ul', { class: 'plain' }, one.lines.map(([, text]) => h('li', {}, text))),
        one.more ? h('p', { class: 'dim' }, `and ${count(one.more)} more`) : null)));
    this.element.scrollTop = scrollTop;
  }

  numbers({ rate: now, since_start: all, row }) {
    const most = this.shared.bound();
    const cell = (text, state) => h('td', { 'data-state': state || null }, text);
    return h('table', { class: 'numbers' },
      h('thead', {}, h('tr', {}, ['', 'Requests', 'Errors', 'p50', 'p99'].map((one) => h('th', { scope: 'col' }, one)))),
      h('tbody', {},
        h('tr', {}, h('th', { scope: 'row' }, 'now'), cell(now ? `${rate(now.requests || 0)} / s` : 'measuring'), cell(now ? share(now.errors || 0) : '', grade(now?.errors)), cell(now ? time(now.p50, most) : ''), cell(now ? time(now.p99, most) : '')),
        h('tr', {}, h('th', { scope: 'row' }, 'since start'), cell(count(all.requests)), cell(share(all.requests ? all.errors / all.requests : 0)), cell(time(all.p50, most)), cell(time(all.p99, most)))),
      row.shared && h('caption', { class: 'dim' }, 'Of rules that serve other names too'));
  }
}
