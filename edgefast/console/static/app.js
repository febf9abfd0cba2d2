// The page: head, numbers, tabs, and the beat at which what is seen is asked for again. Each view is a file of its own.

import { ask, chooseFleet, watch } from './api.js';
import { byId, fill, h, say } from './dom.js';
import { age, count, grade, rate, share, short, some, time } from './format.js';
import { Sparkline } from './sparkline.js';
import { Changes } from './changes.js';
import { Explain } from './explain.js';
import { Limits, Members, Problems } from './lists.js';
import { Routes } from './routes.js';

const BEAT = 2000; // milliseconds
const FIRST_BEATS = 1100; // until the first rates are known
const THEMES = ['auto', 'light', 'dark'];

const views = new Map();
const page = { view: null, live: true, bounds: null, fleet: '', timer: 0, spark: new Sparkline(), cards: new Map() };

const shared = {
  bound: () => page.bounds?.at(-1),
  hasNumbers: () => Boolean(page.bounds),
  open: (name, ...what) => open(name, ...what),
};

function makeViews() {
  const made = [
    ['routes', 'Routes', new Routes(shared)],
    ['explain', 'Explain', new Explain(shared)],
    ['limits', 'Limits', new Limits(shared)],
    ['problems', 'Problems', new Problems(shared)],
    ['changes', 'Changes', new Changes(shared)],
    ['members', 'Workers', new Members(shared)],
  ];
  const bar = document.querySelector('.tabs');
  for (const [name, title, view] of made) {
    const label = h('span', {}, title);
    const badge = h('span', { class: 'badge', hidden: true });
    const tab = h('button', {
      type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `view-${name}`, 'aria-selected': 'false', tabindex: '-1',
      on: { click: () => go(name), keydown: moveAlongTabs },
    }, label, badge);
    const panel = h('section', { role: 'tabpanel', id: `view-${name}`, 'aria-labelledby': `tab-${name}`, class: `view view-${name}`, hidden: true });
    panel.append(...view.build());
    bar.append(tab);
    byId('main').append(panel);
    views.set(name, { view, tab, panel, label, badge });
  }
}

function moveAlongTabs(event) {
  const names = [...views.keys()];
  const at = names.indexOf(page.view);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const name = names[(to + names.length) % names.length];
  go(name);
  views.get(name).tab.focus();
}

function go(name) {
  if (location.hash !== `#${name}`) location.hash = name;
  else show(name);
}

function open(name, ...what) {
  const { view } = views.get(name);
  view.take(...what);
  go(name);
}

function show(name) {
  page.view = name;
  for (const [key, { tab, panel }] of views) {
    const chosen = key === name;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    panel.hidden = !chosen;
  }
  views.get(name).view.enter();
}

function readHash() {
  let words = '';
  try {
    words = decodeURIComponent(location.hash.slice(1));
  } catch {
    // It was not made by this page: the first view is as good as any.
  }
  const [name, ...rest] = words.split('=');
  const known = views.has(name) ? name : 'routes';
  if (known === 'routes' && rest.length) views.get('routes').view.take(rest.join('='));
  show(known);
}

// --- head and numbers -----------------------------------------------------------------------------------------------

function card(name, title) {
  const value = h('output', { class: 'value', 'aria-label': title });
  const note = h('span', { class: 'note' });
  const box = h('div', { class: `card card-${name}` }, h('span', { class: 'title' }, title), value, note);
  page.cards.set(name, { box, value, note });
  return box;
}

function makeCards() {
  const first = card('rate', 'Requests / s');
  first.append(page.spark.element);
  fill(byId('stats'), first, card('errors', 'Errors'), card('p50', 'p50'), card('p99', 'p99'),
    card('connections', 'Connections'), card('table', 'Table'), card('problems', 'Problems'));
}

function put(name, value, note = '', state = '') {
  const one = page.cards.get(name);
  say(one.value, value);
  say(one.note, note);
  one.box.dataset.state = state;
}

function showOverview(told) {
  const { facts, table, problems, numbers } = told;
  page.bounds = numbers ? numbers.bounds : null;
  document.body.classList.toggle('no-numbers', !numbers);
  const pill = byId('state');
  say(pill, facts.said);
  pill.dataset.state = facts.state;
  say(byId('identity'), `${told.kind} on ${facts.name}, ${facts.version}, up ${age(told.now - facts.started)}`);
  document.title = `${facts.name} · edgefast`;
  if (numbers) {
    const { rate: now } = numbers;
    page.spark.add(now ? now.requests || 0 : 0);
    put('rate', rate(now?.requests ?? (now ? 0 : null)), numbers.unmatched ? `${rate(numbers.unmatched)} / s without a rule` : '');
    put('errors', share(now ? now.errors || 0 : null), now?.refused ? `${share(now.refused)} are 4xx` : '', grade(now?.errors));
    const span = now ? `last ${Math.round(numbers.seconds)} s` : 'measuring';
    put('p50', time(now?.p50, shared.bound()), span);
    put('p99', time(now?.p99, shared.bound()), span);
    put('connections', count(numbers.connections), `${count(numbers.active)} active`);
  }
  put('table', short(table.version), table.accepted ? `${age(told.now - table.accepted)} old` : 'none yet');
  page.cards.get('table').box.title = table.version;
  const bad = problems.errors + problems.warnings;
  put('problems', count(bad), bad ? [problems.errors && some(problems.errors, 'error'), problems.warnings && some(problems.warnings, 'warning')].filter(Boolean).join(', ') : 'none known',
    problems.errors ? 'bad' : problems.warnings ? 'warn' : 'good');
  badge('problems', bad, problems.errors ? 'bad' : 'warn');
  badge('members', told.members.total - told.members.good, 'bad');
  say(views.get('members').label, told.kind === 'proxy' ? 'Workers' : 'Proxies');
  views.get('members').view.tell(told);
  views.get('routes').view.tell(told);
  showFleets(told);
}

function badge(name, number, state) {
  const { badge: element } = views.get(name);
  element.hidden = !number;
  element.dataset.state = state;
  say(element, number > 999 ? '999+' : number);
}

function showFleets(told) {
  const box = byId('fleet-box');
  const list = byId('fleet');
  box.hidden = told.fleets.length < 2;
  const known = [...list.options].map((one) => one.value);
  if (known.join('\n') !== told.fleets.join('\n')) {
    fill(list, told.fleets.map((name) => h('option', { value: name }, name)));
    list.value = told.fleet;
  }
}

/** Show another fleet; '' is the first there is. */
function choose(fleet) {
  page.fleet = fleet;
  chooseFleet(fleet);
  page.spark.clear();
  for (const { view } of views.values()) view.forget();
}

// --- the beat -------------------------------------------------------------------------------------------------------

async function askOverview() {
  try {
    return await ask('overview');
  } catch (error) {
    if (error.status !== 404 || !page.fleet) throw error;
    choose(''); // the fleet was deleted
    fill(byId('fleet')); // so that what is shown now is chosen there
    return ask('overview');
  }
}

async function beat() {
  clearTimeout(page.timer);
  let measured = true;
  if (document.visibilityState === 'visible') {
    try {
      const told = await askOverview();
      if (told) {
        showOverview(told);
        measured = !told.numbers || told.numbers.seconds > 0;
      }
      await views.get(page.view).view.refresh();
      document.body.dataset.ready = 'yes';
    } catch (error) {
      if (error.status) lost(error.message);
    }
  }
  clearTimeout(page.timer);
  if (page.live) page.timer = setTimeout(beat, measured ? BEAT : FIRST_BEATS);
}

function lost(why) {
  const line = byId('lost');
  line.hidden = false;
  say(line, `The process cannot be reached: ${why}. The page shows old data and tries again.`);
  byId('state').dataset.state = 'bad';
}

function setLive(on) {
  page.live = on;
  byId('live').setAttribute('aria-pressed', String(on));
  say(byId('live').lastElementChild, on ? 'Live' : 'Paused');
  if (on) beat();
  else clearTimeout(page.timer);
}

function setTheme(name) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  say(byId('theme').lastElementChild, name);
  byId('theme').setAttribute('aria-label', `Theme: ${name}`);
  try {
    localStorage.setItem('edgefast-theme', name);
  } catch {
    // Storage may be off: the choice lasts as long as the page.
  }
}

function readTheme() {
  try {
    const kept = localStorage.getItem('edgefast-theme');
    return THEMES.includes(kept) ? kept : 'auto';
  } catch {
    return 'auto';
  }
}

function start() {
  let theme = readTheme();
  setTheme(theme);
  makeCards();
  makeViews();
  watch(lost, () => { byId('lost').hidden = true; });
  byId('theme').addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    setTheme(theme);
  });
  byId('live').addEventListener('click', () => setLive(!page.live));
  byId('fleet').addEventListener('change', (event) => {
    choose(event.target.value);
    beat();
  });
  window.addEventListener('hashchange', readHash);
  document.addEventListener('visibilitychange', () => page.live && document.visibilityState === 'visible' && beat());
  readHash();
  beat();
}

start();
