// Tree: as many lines as there are, of which only those in sight exist. Pages of children are asked for as they come into
// sight; what is open is kept by id, because places change when the order does.

import { ask, Refusal } from './api.js';
import { h } from './dom.js';
import { drawRow, makeRow } from './treerow.js';

const PAGE = 100;
const AROUND = 6; // lines above and below what is seen
const OPEN = 6000; // characters of ids in a question

class Branch {
  constructor(id, parent, at) {
    this.id = id;
    this.parent = parent;
    this.at = at; // its own place among the parent's children
    this.total = 0;
    this.pages = new Map();
    this.open = new Map(); // id -> Branch
    this.known = false;
  }

  /** Lines below it. */
  get size() {
    let size = this.total;
    for (const one of this.open.values()) size += one.size;
    return size;
  }

  sorted() {
    return [...this.open.values()].sort((a, b) => a.at - b.at);
  }

  row(at) {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }
}

export class Tree {
  constructor(shared, onSelect) {
    this.shared = shared;
    this.onSelect = onSelect;
    this.order = { sort: 'name', only: '' };
    this.root = new Branch('', null, 0);
    this.selected = '';
    this.active = 0; // place of the line that keys move
    this.lines = new Map(); // key -> element
    this.asking = new Map(); // key -> promise
    this.space = h('div', { class: 'tree-space' });
    this.element = h('div', {
      class: 'tree', role: 'tree', tabindex: '0', 'aria-label': 'Gateways, listeners, virtual hosts, rules, backends',
      on: { scroll: () => this.draw(), keydown: (event) => this.onKey(event), click: (event) => this.onClick(event) },
    }, this.space);
    this.step = 34;
    new ResizeObserver(() => this.measure()).observe(this.element);
  }

  /** Lines are higher where there is little room beside each other: the style sheet says how high. */
  measure() {
    const step = parseFloat(getComputedStyle(this.element).getPropertyValue('--row')) || this.step;
    const top = this.element.scrollTop / this.step;
    if (step !== this.step) {
      this.step = step;
      this.space.style.height = `${this.root.size * step}px`;
      this.element.scrollTop = top * step;
    }
    this.draw();
  }

  // --- which line is where ------------------------------------------------------------------------------------------

  /** Return what is at a place in sight: the branch it belongs to, its number there, how deep it is. */
  find(place) {
    let branch = this.root;
    let level = 1;
    let left = place;
    for (;;) {
      let before = 0; // children of the branch that are passed already
      let into = null;
      for (const one of branch.sorted()) {
        const own = one.at - before; // lines up to and without the open one
        if (left <= own) break;
        left -= own + 1;
        before = one.at + 1;
        if (left < one.size) {
          into = one;
          break;
        }
        left -= one.size;
      }
      if (!into) return { branch, at: before + left, level };
      branch = into;
      level += 1;
    }
  }

  /** Return the place of a child of a branch. */
  placeOf(branch, at) {
    let place = at;
    for (const one of branch.open.values()) if (one.at < at) place += one.size;
    return branch.parent ? this.placeOf(branch.parent, branch.at) + 1 + place : place;
  }

  // --- asking -------------------------------------------------------------------------------------------------------

  load(branch, page) {
    const key = `tree ${branch.id} ${page}`;
    let asked = this.asking.get(key);
    if (!asked) {
      asked = this.fetch(branch, page, key).finally(() => {
        if (this.asking.get(key) === asked) this.asking.delete(key);
      });
      this.asking.set(key, asked);
    }
    return asked;
  }

  async fetch(branch, page, key) {
    const order = this.order;
    try {
      const open = this.openBelow(branch);
      const told = await ask('tree', { node: branch.id, offset: page * PAGE, limit: PAGE, open, ...order }, key);
      if (!told || order !== this.order) return;
      branch.total = told.page.total;
      branch.known = true;
      if (told.page.offset === page * PAGE) branch.pages.set(page, told.page.rows);
      this.place(branch, told.places);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
      branch.parent?.open.delete(branch.id); // it is gone from the table
    }
  }

  /** Return the ids of open children, as many as fit into a question; the others are closed. */
  openBelow(branch) {
    let length = 0;
    for (const id of [...branch.open.keys()].reverse()) {
      length += encodeURIComponent(id).length;
      if (length > OPEN) branch.open.delete(id);
    }
    return [...branch.open.keys()].join('\n');
  }

  /** Note where open children are now. */
  place(branch, places) {
    for (const [id, at] of Object.entries(places)) {
      const one = branch.open.get(id);
      if (one && at < 0) branch.open.delete(id);
      else if (one) one.at = at;
    }
  }

  /** Ask again for what is in sight, and forget what is not. */
  async refresh() {
    const wanted = this.inSight();
    const all = [this.root];
    for (const branch of all) {
      all.push(...branch.open.values());
      for (const page of branch.pages.keys()) {
        if (!wanted.some((one) => one.branch === branch && one.page === page)) branch.pages.delete(page);
      }
    }
    await Promise.all(wanted.map(({ branch, page }) => this.load(branch, page)));
    this.draw();
  }

  inSight() {
    if (!this.root.known) return [{ branch: this.root, page: 0 }];
    const found = [];
    const [first, last] = this.range();
    for (let place = first; place < last; place += 1) {
      const { branch, at } = this.find(place);
      const page = Math.floor(at / PAGE);
      if (!found.some((one) => one.branch === branch && one.page === page)) found.push({ branch, page });
    }
    return found.length ? found : [{ branch: this.root, page: 0 }];
  }

  range() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.step) - AROUND);
    const seen = Math.ceil(this.element.clientHeight / this.step) + 2 * AROUND;
    return [first, Math.min(this.root.size, first + seen)];
  }

  forget() {
    this.root = new Branch('', null, 0);
    this.active = 0;
    this.element.scrollTop = 0;
  }

  async reorder(sort, only) {
    this.order = { sort, only };
    const close = (branch) => {
      branch.pages.clear();
      branch.open.forEach(close);
    };
    close(this.root);
    this.asking.clear(); // what is on its way is of the order before
    const load = async (branch) => {
      await this.load(branch, 0);
      await Promise.all([...branch.open.values()].map(load));
    };
    await load(this.root);
    this.element.scrollTop = 0;
    this.active = 0;
    this.draw();
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  draw() {
    const size = this.root.size;
    this.space.style.height = `${size * this.step}px`;
    const [first, last] = this.range();
    const used = new Set();
    const missing = new Map();
    for (let place = first; place < last; place += 1) {
      const { branch, at, level } = this.find(place);
      const row = branch.row(at);
      if (!row) missing.set(`${branch.id} ${Math.floor(at / PAGE)}`, [branch, Math.floor(at / PAGE)]);
      const key = row ? row.id : `? ${branch.id} ${at}`;
      used.add(key);
      let line = this.lines.get(key);
      if (!line) {
        line = makeRow();
        this.lines.set(key, line);
        this.space.append(line.element);
      }
      line.element.style.transform = `translateY(${place * this.step}px)`;
      line.place = place;
      line.row = row;
      line.element.id = `line-${place}`;
      line.element.setAttribute('aria-level', String(level));
      line.element.setAttribute('aria-posinset', String(at + 1));
      line.element.setAttribute('aria-setsize', String(branch.total));
      line.element.classList.toggle('active', place === this.active);
      drawRow(line, row, level, Boolean(row && branch.open.has(row.id)), Boolean(row) && row.id === this.selected, this.shared);
    }
    for (const [key, line] of this.lines) {
      if (!used.has(key)) {
        line.element.remove();
        this.lines.delete(key);
      }
    }
    if (size) this.element.setAttribute('aria-activedescendant', `line-${this.active}`);
    this.element.setAttribute('aria-busy', String(missing.size > 0));
    for (const [key, [branch, page]] of missing) {
      if (!this.asking.has(`tree ${key}`)) this.load(branch, page).then(() => this.draw(), () => {});
    }
  }

  // --- moving -------------------------------------------------------------------------------------------------------

  lineAt(place) {
    const { branch, at } = this.find(place);
    return { branch, at, row: branch.row(at) };
  }

  async toggle(place, wanted) {
    const { branch, at, row } = this.lineAt(place);
    if (!row || !row.children) return;
    const opened = branch.open.has(row.id);
    if (wanted === opened) return;
    if (opened) branch.open.delete(row.id);
    else {
      const one = new Branch(row.id, branch, at);
      branch.open.set(row.id, one);
      await this.load(one, 0);
    }
    this.draw();
  }

  /** Open lines from the top as long as not more than some are seen. */
  async openFirst(most) {
    for (let place = 0; place < this.root.size; place += 1) {
      const { row } = this.lineAt(place);
      if (row?.children && row.kind !== 'rule' && row.kind !== 'host' && this.root.size + row.children <= most) await this.toggle(place, true);
    }
  }

  /** Choose a line; `wrong`: because of what is wrong with it. */
  select(place, wrong = false) {
    const { row } = this.lineAt(place);
    this.active = place;
    if (row) {
      this.selected = row.id;
      this.onSelect(row.id, wrong);
    }
    this.draw();
  }

  move(place) {
    this.active = Math.max(0, Math.min(this.root.size - 1, place));
    const top = this.active * this.step;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.step > scrollTop + clientHeight) this.element.scrollTop = top + this.step - clientHeight;
    this.draw();
  }

  onClick(event) {
    const element = event.target.closest('.row');
    const line = [...this.lines.values()].find((one) => one.element === element);
    if (!line) return;
    if (event.target.closest('.twist')) {
      this.active = line.place;
      this.toggle(line.place);
    } else if (line.row && event.target.closest('.mark')) {
      this.select(line.place, true);
    } else {
      if (line.row && this.selected === line.row.id) this.toggle(line.place);
      else this.toggle(line.place, true);
      this.select(line.place);
    }
  }

  onKey(event) {
    const seen = Math.max(1, Math.floor(this.element.clientHeight / this.step) - 1);
    const { branch, row } = this.lineAt(this.active);
    const opened = Boolean(row && branch.open.has(row.id));
    const moves = {
      ArrowDown: () => this.move(this.active + 1),
      ArrowUp: () => this.move(this.active - 1),
      PageDown: () => this.move(this.active + seen),
      PageUp: () => this.move(this.active - seen),
      Home: () => this.move(0),
      End: () => this.move(this.root.size - 1),
      Enter: () => this.select(this.active),
      ' ': () => this.select(this.active),
      ArrowRight: () => (opened ? this.move(this.active + 1) : this.toggle(this.active, true)),
      ArrowLeft: () => {
        if (opened) this.toggle(this.active, false);
        else if (branch.parent) this.move(this.placeOf(branch.parent, branch.at));
      },
    };
    const act = moves[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  /** Open the way to a line and show it: ids and places from the gateway down, places by name. */
  async reveal(path, places) {
    let branch = this.root;
    if (!branch.known) await this.load(branch, 0);
    for (let depth = 0; depth < path.length - 1; depth += 1) {
      const id = path[depth];
      let one = branch.open.get(id);
      if (!one) {
        one = new Branch(id, branch, places[depth]);
        branch.open.set(id, one);
      }
      one.at = places[depth];
      if (!one.known) await this.load(one, Math.floor(places[depth + 1] / PAGE));
      branch = one;
    }
    this.selected = path.at(-1);
    const place = this.placeOf(branch, places.at(-1));
    this.space.style.height = `${this.root.size * this.step}px`;
    this.element.scrollTop = Math.max(0, place * this.step - this.element.clientHeight / 3);
    this.move(place);
  }
}
