// Explain: a request that is not sent, and what would become of it. The answer is that of `edgefast explain -o json`.

import { ask } from './api.js';
import { fill, h } from './dom.js';
import { count, duration, short, some } from './format.js';
import { aboutReasons } from './reason.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const REASONS = { 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 404: 'Not Found',
  408: 'Request Timeout', 413: 'Content Too Large', 421: 'Misdirected Request', 429: 'Too Many Requests', 431: 'Header Fields Too Large', 500: 'Internal Server Error', 503: 'Service Unavailable' };

export class Explain {
  constructor(shared) {
    this.shared = shared;
    this.given = null;
  }

  build() {
    const field = (id, label, element, hint) => h('div', { class: `field field-${id}` }, h('label', { for: `ask-${id}` }, label), element, hint && h('span', { class: 'dim hint' }, hint));
    this.method = h('select', { id: 'ask-method' }, METHODS.map((one) => h('option', { value: one }, one)));
    this.url = h('input', { id: 'ask-url', type: 'text', required: true, placeholder: 'http://www.example.com/shop', autocomplete: 'off', spellcheck: 'false', maxlength: '4000' });
    this.headers = h('textarea', { id: 'ask-headers', rows: '3', placeholder: 'x-user: one', spellcheck: 'false', maxlength: '3000' });
    this.source = h('input', { id: 'ask-source', type: 'text', placeholder: '127.0.0.1', autocomplete: 'off', spellcheck: 'false', maxlength: '64' });
    this.sni = h('input', { id: 'ask-sni', type: 'text', placeholder: 'as in the URL', autocomplete: 'off', spellcheck: 'false', maxlength: '255' });
    this.submit = h('button', { type: 'submit', class: 'primary' }, 'Explain');
    this.result = h('div', { class: 'panel result', 'aria-live': 'polite', tabindex: '-1' },
      h('p', { class: 'empty' }, 'Which rule takes a request, what its backend would see, and why every nearer rule lost. Nothing is sent.'));
    const form = h('form', { class: 'panel form', on: { submit: (event) => { event.preventDefault(); this.run(); } } },
      h('div', { class: 'line' }, field('method', 'Method', this.method), field('url', 'URL', this.url)),
      field('headers', 'Headers', this.headers, 'one to a line'),
      h('div', { class: 'line even' }, field('source', 'Comes from', this.source), field('sni', 'TLS name', this.sni)),
      this.submit);
    return [h('div', { class: 'split explain' }, form, this.result)];
  }

  /** Fill in a request and explain it when the view is seen. */
  take(trial) {
    this.given = trial;
  }

  enter() {
    if (this.given) {
      const { method, url, headers } = this.given;
      this.given = null;
      if (!METHODS.includes(method)) this.method.append(h('option', { value: method }, method));
      this.method.value = method;
      this.url.value = url;
      this.headers.value = headers || '';
      this.run();
    }
  }

  forget() {}

  async refresh() {}

  async run() {
    this.submit.disabled = true;
    try {
      const told = await ask('explain', { method: this.method.value, url: this.url.value, headers: this.headers.value, source: this.source.value, sni: this.sni.value });
      if (told) this.draw(told);
    } catch (error) {
      fill(this.result, h('p', { class: 'problem', 'data-state': 'bad', role: 'alert' }, error.message));
    } finally {
      this.submit.disabled = false;
    }
  }

  draw(told) {
    fill(this.result,
      told.answers.map((one) => verdict(one, told.answers.length > 1)),
      told.node && h('button', { type: 'button', class: 'quiet-button', on: { click: () => this.shared.open('routes', told.node) } }, 'Show the rule in the tree'),
      h('ol', { class: 'way', 'aria-label': 'The way of the request' }, [...steps(told)]),
      candidates(told),
      (told.notes || []).map((one) => h('p', { class: 'dim' }, one)),
      told.table && h('p', { class: 'dim' }, `table ${short(told.table)}`));
    this.result.scrollTop = 0;
  }
}

function verdict(one, several) {
  const state = one.kind === 'backend' ? (one.why ? 'warn' : 'good') : one.kind === 'redirect' ? 'info' : 'bad';
  const part = several ? `${one.share} % ` : '';
  const said = one.kind === 'backend' ? `goes to ${one.backend}` : one.kind === 'closed' ? 'gets no answer' : one.grpc_status || `${one.status} ${REASONS[one.status] || ''}`.trim();
  return h('div', { class: 'verdict', 'data-state': state },
    h('strong', {}, `${part}${said}`), one.location && h('code', {}, one.location),
    one.why && h('span', {}, one.why), one.fix && h('span', { class: 'fix' }, one.fix), aboutReasons(one.reasons));
}

function* steps(told) {
  const asked = told.request;
  const step = (title, lines, place) => h('li', {}, h('span', { class: 'title' }, title), h('div', {},
    lines.filter(Boolean).map((one) => (one instanceof Node ? one : h('span', {}, one))), place && writePlace(place)));
  const client = asked.client && asked.client !== asked.source ? `, for ${asked.client}` : '';
  yield step('Request', [`${asked.method} ${asked.url}`, `from ${asked.source || 'nobody'}${client}${asked.sni ? `, TLS name ${asked.sni}` : ''}`]);
  if (told.listener) {
    const { name, port, protocol, hostname, place } = told.listener;
    yield step('Listener', [`${name}`, `port ${port}, ${protocol}, ${hostname === '*' ? 'any host' : hostname}`], place);
  }
  if (told.virtual_hosts?.length) yield step('Hostnames', [told.virtual_hosts.map((one) => (one === '*' ? 'any host' : one)).join(', then ')]);
  if (told.rule) {
    const { route, index, name, match, place } = told.rule;
    yield step('Rule', [`${route} rule ${name || index}`, match], place);
  }
  if (told.filters?.length) yield step('Filters', told.filters);
  if (told.limits?.length) yield step('Limits', told.limits.map(writeLimit));
  for (const one of told.backends || []) yield step('Backend', [...backend(one)], one.place);
  if (told.mirrors?.length) yield step('Copies', told.mirrors);
  if (told.timeouts) {
    const { request, connect, backend_request: each } = told.timeouts;
    yield step('Time', [`${request ? duration(request) : 'no limit'} for the answer${each ? `, ${duration(each)} for each try` : ''}, ${duration(connect)} to connect${told.retry ? `, ${some(told.retry.attempts, 'retry', 'retries')}` : ''}`]);
  }
}

function* backend(one) {
  yield `${one.share} % ${one.name || `answered with ${one.status}: ${one.reason}`}`;
  for (const endpoint of one.endpoints || []) {
    const state = endpoint.healthy === undefined || endpoint.healthy === null ? '' : !endpoint.healthy ? 'bad' : endpoint.failures ? 'warn' : 'good';
    yield h('span', { class: 'endpoint', 'data-state': state }, endpoint.address, endpoint.zone ? ` in ${endpoint.zone}` : '',
      state && ` ${state === 'warn' ? 'in use' : endpoint.healthy ? 'healthy' : `ejected: ${endpoint.workers}`}`, endpoint.failures ? `, its last ${endpoint.failures === 1 ? 'request failed' : `${some(endpoint.failures, 'request')} failed in a row`}` : '', endpoint.active ? `, ${endpoint.active} active` : '');
  }
  if (one.more_endpoints) yield `and ${count(one.more_endpoints)} more endpoints`;
  if (one.name && !(one.endpoints || []).length) yield h('span', { class: 'endpoint', 'data-state': 'bad' }, 'no endpoints');
  if (one.head?.length) yield h('details', {}, h('summary', {}, 'what it sees'), h('pre', {}, one.head.join('\n')));
}

function writeLimit(one) {
  const state = one.counts ? (one.remaining === 0 && !one.shadow ? 'bad' : 'good') : '';
  const values = Object.entries(one.values || {}).map(([name, value]) => ` ${name}=${value}`).join('');
  const used = one.used === undefined || one.used === null ? '' : `, ${one.used} used, ${one.remaining} left${one.reset ? ` for ${one.reset} s` : ''}`;
  return h('span', { 'data-state': state }, `${one.name}: ${one.requests} in ${duration(one.unit * 1000)}${values}${one.counts ? used : `, not counted: ${one.why_not}`}${one.shadow ? ', shadow' : ''}`);
}

function candidates(told) {
  const found = told.candidates || [];
  if (!found.length) return null;
  return h('section', {}, h('h3', {}, told.rule ? 'Rules that did not get it' : 'Rules that were near'),
    h('ul', { class: 'candidates' }, found.map((one) => h('li', {},
      h('span', { class: 'name' }, `${one.route}${one.rule === undefined || one.rule === null ? '' : ` rule ${one.name || one.rule}`}`), one.match && h('code', {}, one.match),
      h('span', { class: 'why' }, one.reason), one.place && writePlace(one.place)))),
    told.more_candidates ? h('p', { class: 'dim' }, `and ${count(told.more_candidates)} more`) : null);
}

function writePlace(place) {
  const said = [place.source, place.object, place.path].filter(Boolean).join(' ');
  return said ? h('span', { class: 'dim place' }, said) : null;
}
