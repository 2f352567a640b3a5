/** cel-go's sets extension: lists as sets. Compares and charges each pair of elements. */
import type { Budget } from '#cel/limits/budget.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { func } from '#cel/extensions/overload.ts';
import type { Library } from '#cel/library.ts';
import { BOOL, listOf, param } from '#cel/type.ts';
import type { CelList, CelValue } from '#cel/value.ts';

const LIST = listOf(param('T'));

export const setsLibrary: Library = {
  functions: {
    'sets.contains': [func<[CelList, CelList]>('list_sets_contains_list', [LIST, LIST], BOOL, containsAll)],
    'sets.equivalent': [
      func<[CelList, CelList]>('list_sets_equivalent_list', [LIST, LIST], BOOL, (budget, a, b) => {
        return containsAll(budget, a, b) && containsAll(budget, b, a);
      }),
    ],
    'sets.intersects': [func<[CelList, CelList]>('list_sets_intersects_list', [LIST, LIST], BOOL, intersects)],
  },
};

function containsAll(budget: Budget, list: CelList, wanted: CelList): boolean {
  for (let i = 0; i < wanted.size; i++) {
    if (!contains(budget, list, wanted.at(i))) return false;
  }
  return true;
}

function intersects(budget: Budget, a: CelList, b: CelList): boolean {
  for (let i = 0; i < a.size; i++) {
    if (contains(budget, b, a.at(i))) return true;
  }
  return false;
}

function contains(budget: Budget, list: CelList, value: CelValue): boolean {
  for (let i = 0; i < list.size; i++) {
    budget.charge(2);
    if (areEqual(list.at(i), value, budget)) return true;
  }
  return false;
}
