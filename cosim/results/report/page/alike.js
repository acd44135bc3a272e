/**
 * What comes out the same is shown once.
 * @module alike
 */

/**
 * Things by what is shown, in the order of the first that shows it.
 * @param {Array} all @param {(one: any) => Array} shown
 * @returns {Array[]} groups
 */
export function groupsOf(all, shown) {
  const found = new Map();
  for (const one of all) {
    const key = JSON.stringify(shown(one));
    if (found.has(key)) found.get(key).push(one);
    else found.set(key, [one]);
  }
  return [...found.values()];
}

/** The first of a group by its name, and how many there are. */
export const named = (name, times) => (times > 1 ? `${name} × ${times.toLocaleString("en")} alike` : name);
