// Elements from values. Text is always set as text: nothing that comes from a configuration or a client becomes markup.

const SVG = 'http://www.w3.org/2000/svg';
// Characters that are not seen, or that turn the order of what follows: shown by their number.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Return text in which every character is seen. */
export function clean(text) {
  return String(text).replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Make an element: properties are attributes, `class`, `on` for events; children are elements or text. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  set(element, props || {});
  append(element, children);
  return element;
}

/** Make an SVG element of attributes. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function set(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === 'class') {
      element.className = value;
    } else if (name === 'title') {
      element.setAttribute('title', clean(value));
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === '') continue;
    element.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
}

/** Put new children in place of the present ones. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Set text unless it is there already: what did not change is not laid out again. */
export function say(element, text) {
  const wanted = clean(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Find an element by its id. */
export const byId = (id) => document.getElementById(id);
