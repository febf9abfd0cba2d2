// Routes: search, order, the tree, and beside it everything about the line that is chosen.

import { ask } from './api.js';
import { fill, h, say } from './dom.js';
import { count, some } from './format.js';
import { Detail } from './detail.js';
import { Tree } from './tree.js';
import { nameOf, WORDS } from './treerow.js';

const WAIT = 150; // milliseconds after a key
const FOUND = 50;
const FIRST = 24; // lines that the tree opens with, at most

export class Routes {
  constructor(shared) {
    this.shared = shared;
    this.tree = new Tree(shared, (id, wrong) => this.choose(id, wrong));
    this.detail = new Detail(shared, (id) => this.take(id));
    this.wanted = '';
    this.chosen = '';
    this.timer = 0;
  }

  build() {
    this.box = h('input', { type: 'search', id: 'search', placeholder: 'Search hosts, paths, routes, backends', autocomplete: 'off', spellcheck: 'false',
      'aria-label': 'Search', on: { input: () => this.search(), keydown: (event) => this.onSearchKey(event) } });
    this.sort = h('select', { id: 'sort', 'aria-label': 'Order', on: { change: () => this.reorder() } },
      [['name', 'In order of names'], ['requests', 'Most requests first'], ['errors', 'Most errors first'], ['p99', 'Slowest first'], ['problems', 'Problems first']]
        .map(([value, text]) => h('option', { value }, text)));
    this.only = h('input', { type: 'checkbox', id: 'only', on: { change: () => this.reorder() } });
    this.counts = h('span', { class: 'counts dim' });
    this.found = h('div', { class: 'found', hidden: true });
    const head = h('div', { class: 'row head', 'aria-hidden': 'true' }, h('span', { class: 'label' }, 'Name'),
      ['Req / s', 'Errors', 'p50', 'p99'].map((one, at) => h('span', { class: `cell ${['rate', 'errors', 'p50', 'p99'][at]}` }, one)));
    return [
      h('div', { class: 'bar' }, this.box, this.sort, h('label', { class: 'check' }, this.only, 'Problems only'), this.counts),
      h('div', { class: 'split' },
        h('div', { class: 'panel list' }, head, this.found, this.tree.element),
        this.detail.element),
    ];
  }

  /** Show a line when the view is seen next. */
  take(id) {
    this.wanted = id;
    if (!this.tree.element.closest('[hidden]')) this.reveal();
  }

  enter() {
    this.tree.draw();
    this.refresh().catch(() => {});
  }

  forget() {
    this.tree.forget();
    this.detail.clear();
    this.chosen = '';
    this.begun = false;
  }

  tell(told) {
    const { counts } = told;
    this.detail.summarise(told);
    say(this.counts, `${some(counts.routes, 'route')}, ${some(counts.rules, 'rule')} on ${some(counts.hosts, 'host')}`);
    this.counts.title = Object.entries(counts).map(([name, value]) => `${count(value)} ${name}`).join(', ');
  }

  async refresh() {
    await this.tree.refresh();
    if (this.wanted) await this.reveal();
    else if (this.chosen) await this.detail.show(this.chosen);
    if (!this.begun && this.tree.root.total) {
      this.begun = true;
      await this.tree.openFirst(FIRST);
    }
  }

  choose(id, wrong) {
    this.chosen = id;
    this.wanted = '';
    history.replaceState(null, '', `#${encodeURIComponent(`routes=${id}`)}`);
    this.detail.show(id).then(() => wrong && this.detail.showProblems()).catch(() => {});
  }

  async reveal() {
    const id = this.wanted;
    this.wanted = '';
    if (this.sort.value !== 'name' || this.only.checked) {
      this.sort.value = 'name';
      this.only.checked = false;
      await this.tree.reorder('name', '');
    }
    this.closeSearch();
    const told = await this.detail.show(id);
    if (!told) return;
    this.chosen = id;
    history.replaceState(null, '', `#${encodeURIComponent(`routes=${id}`)}`);
    await this.tree.reveal(told.path.map(([one]) => one), told.places);
  }

  reorder() {
    this.tree.reorder(this.sort.value, this.only.checked ? 'problems' : '').catch(() => {});
  }

  // --- search -------------------------------------------------------------------------------------------------------

  search() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.find().catch(() => {}), WAIT);
  }

  closeSearch() {
    clearTimeout(this.timer);
    this.found.hidden = true;
    this.tree.element.hidden = false;
  }

  async find() {
    const words = this.box.value.trim();
    if (!words) {
      this.closeSearch();
      this.tree.draw();
      return;
    }
    const told = await ask('search', { q: words, limit: FOUND });
    if (!told) return;
    this.found.hidden = false;
    this.tree.element.hidden = true;
    const shown = told.total > told.rows.length ? `${count(told.total)}${told.total >= 5000 ? ' or more' : ''} found, the first ${told.rows.length}` : `${count(told.total)} found`;
    fill(this.found, h('p', { class: 'dim pad', role: 'status' }, told.total ? shown : `Nothing is called "${words}"`),
      told.rows.map(({ row, path }) => h('button', { type: 'button', class: 'hit', 'data-id': row.id, on: { click: () => this.take(row.id) } },
        h('span', { class: 'kind', 'data-kind': row.kind, title: WORDS[row.kind] }, row.kind[0].toUpperCase()),
        h('span', { class: 'what' }, h('span', { class: 'name' }, nameOf(row)), (row.tags || []).map((tag) => h('span', { class: 'tag' }, tag)),
          h('span', { class: 'dim about' }, [row.about, path.join(' › ')].filter(Boolean).join(' · '))))));
  }

  onSearchKey(event) {
    if (event.key === 'Escape') {
      this.box.value = '';
      this.closeSearch();
      this.tree.draw();
    } else if (event.key === 'Enter' || event.key === 'ArrowDown') {
      event.preventDefault();
      this.found.querySelector('button')?.focus();
    }
  }
}
