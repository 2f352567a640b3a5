/** Builds a JSON patch that removes one item from a list, and fails if another item is at the index by then. */
export function removeListItem(list: string, index: number, item: string): readonly object[] {
  const path = `${list}/${index}`;
  return [
    { op: 'test', path, value: item },
    { op: 'remove', path },
  ];
}
