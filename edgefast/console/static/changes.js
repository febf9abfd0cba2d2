// Changes: the last tables, and what one of them changed, for requests and for rules.

import { ask } from './api.js';
import { fill, h } from './dom.js';
import { count, moment, short, some } from './format.js';

const SIGNS = { added: '+', removed: '−', changed: '~' };
const STATES = { added: 'good', removed: 'bad', changed: 'warn' };

export class Changes {
  constructor(shared) {
    this.shared = shared;
    this.step = 0; // 0: the newest
    this.newest = 0;
  }

  build() {
    this.list = h('ol', { class: 'panel steps', 'aria-label': 'Last tables' });
    this.result = h('div', { class: 'panel result', 'aria-live': 'polite' });
    return [h('div', { class: 'split changes' }, this.list, this.result)];
  }

  take() {}

  forget() {
    this.step = 0;
    this.newest = 0;
  }

  enter() {
    this.load().catch(() => {});
  }

  async refresh() {
    await this.load();
  }

  async load() {
    const told = await ask('changes', this.step ? { step: this.step } : {});
    if (!told) return;
    const newest = told.steps[0]?.number || 0;
    const now = `${newest} ${told.step?.number}`;
    if (now === this.newest && told.steps.length) return;
    this.newest = now;
    fill(this.list, told.steps.map((one) => h('li', {}, h('button', {
      type: 'button', class: 'step', 'aria-current': one.number === told.step?.number ? 'true' : null,
      on: { click: () => { this.step = one.number; this.load().catch(() => {}); } },
    }, h('span', {}, moment(one.at)), h('code', {}, `${short(one.before)} → ${short(one.after)}`), h('span', { class: 'dim' }, some(one.resources, 'resource'))))));
    this.list.hidden = !told.steps.length;
    this.draw(told);
  }

  draw(told) {
    if (!told.step) {
      fill(this.result, h('p', { class: 'empty' }, told.steps.length ? 'This table is not known any more.' : 'The table has not changed since the start.'));
      return;
    }
    const opens = told.requests.filter((one) => one.opens).length;
    const breaks = told.requests.filter((one) => one.breaks).length;
    fill(this.result,
      h('h2', {}, 'For requests'),
      told.why_not ? h('p', { class: 'dim' }, told.why_not)
        : h('p', { class: 'dim' }, `${some(told.tried, 'example request')} tried${opens ? `, ${some(opens, 'opening')}` : ''}${breaks ? `, ${some(breaks, 'break')}` : ''}.`),
      told.requests.length ? h('ul', { class: 'moves' }, told.requests.map((one) => this.request(one))) : !told.why_not && h('p', { class: 'empty' }, 'No example gets another answer.'),
      told.more_requests ? h('p', { class: 'dim' }, `and ${count(told.more_requests)} more`) : null,
      h('h2', {}, 'In the table'),
      told.moved.length ? h('ul', { class: 'moves' }, told.moved.map(move)) : h('p', { class: 'empty' }, 'Only where rules are written has changed.'),
      told.more_moved ? h('p', { class: 'dim' }, `and ${count(told.more_moved)} more`) : null);
  }

  request(one) {
    const sample = one.example;
    return h('li', { 'data-state': one.opens || one.breaks ? 'bad' : one.kind === 'gained' ? 'good' : 'warn' },
      h('span', { class: 'sign', 'aria-hidden': 'true' }, one.opens || one.breaks ? '!' : '~'),
      h('div', {}, h('span', { class: 'break' }, ['opened', 'refused'].includes(one.kind) && h('strong', {}, `${one.kind} `), one.text),
        one.before && one.after && h('span', { class: 'dim break' }, `${one.before.answer || 'nothing'} → ${one.after.answer || 'nothing'}`),
        sample && h('button', { type: 'button', class: 'link break', on: { click: () => this.shared.open('explain', { method: sample.method, url: sample.url, headers: (sample.headers || []).map(([name, value]) => `${name}: ${value}`).join('\n') }) } }, `${sample.method} ${sample.url}`)));
  }
}

function move(one) {
  return h('li', { 'data-state': STATES[one.what] }, h('span', { class: 'sign', 'aria-hidden': 'true' }, SIGNS[one.what]),
    h('div', {}, h('span', { class: 'break' }, `${one.kind} ${one.name} `, h('span', { class: 'dim' }, one.what)), one.said && h('code', { class: 'break' }, one.said), one.where && h('span', { class: 'dim break' }, one.where)));
}
