/** A JSON patch that takes one item out of a list, and fails if it is not there any more. */
export function removeListItem(list: string, index: number, item: string): readonly object[] {
  const path = `${list}/${index}`;
  return [
    { op: 'test', path, value: item },
    { op: 'remove', path },
  ];
}
