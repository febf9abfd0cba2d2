// Questions to the process that this page is about. One at a time for each purpose: a newer one puts an older one aside.

const pending = new Map();
let fleet = '';
let onLost = () => {};
let onFound = () => {};

/** Whose table is asked for; '' is the only one. */
export function chooseFleet(name) {
  fleet = name;
}

/** Say who is told when the process does not answer, and when it does again. */
export function watch(lost, found) {
  onLost = lost;
  onFound = found;
}

/** An answer that says what is wrong with the question. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Ask; null when a newer question for the same purpose was asked since. Throws Refusal. */
export async function ask(name, query = {}, purpose = name) {
  pending.get(purpose)?.abort();
  const control = new AbortController();
  pending.set(purpose, control);
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries({ fleet, ...query })) {
    if (value !== '' && value !== undefined && value !== null) words.set(key, String(value));
  }
  let answer;
  try {
    const signal = AbortSignal.any([control.signal, AbortSignal.timeout(20000)]);
    answer = await fetch(`api/${name}?${words}`, { signal, credentials: 'omit', cache: 'no-store' });
    const told = await answer.json();
    onFound();
    if (!answer.ok) throw new Refusal(answer.status, told.error || answer.statusText);
    return told;
  } catch (error) {
    if (control.signal.aborted) return null;
    if (error instanceof Refusal) throw error;
    const why = answer && !answer.ok ? `it answered ${answer.status}` : 'it does not answer';
    onLost(why);
    throw new Refusal(0, why);
  } finally {
    if (pending.get(purpose) === control) pending.delete(purpose);
  }
}
