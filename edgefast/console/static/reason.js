// Reasons: what the word of a problem means and what to do, asked for when somebody opens it. The texts are those of docs/problems.

import { ask } from './api.js';
import { fill, h } from './dom.js';

/** Text with what stands between backquotes as code. */
const marked = (text) => text.split('`').map((part, at) => (at % 2 ? h('code', {}, part) : part));

/** A line for each reason that there is a page about; '' for none. */
export function aboutReasons(words) {
  return (words || []).map((word) => {
    const text = h('div', { class: 'reason' });
    const show = async (event) => {
      if (!event.target.open || text.childNodes.length) return;
      try {
        const told = await ask('reason', { q: word }, `reason ${word}`);
        if (told) fill(text, h('p', {}, marked(told.means)), h('ul', {}, told.fix.map((one) => h('li', {}, marked(one)))), h('p', { class: 'dim' }, 'More: ', h('code', {}, `edgefast problem ${word}`)));
      } catch (error) {
        fill(text, h('p', { class: 'dim' }, error.message));
      }
    };
    return h('details', { class: 'about', on: { toggle: show } }, h('summary', {}, `What is ${word}?`), text);
  });
}
