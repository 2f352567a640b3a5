/** Formats field paths for users, as in the conflicts of server-side apply. */
import type { FieldSet } from './field-set.ts';
import { describeElement, sortElements } from './path-element.ts';

/** Returns `.spec.containers[name="web"].image` for each member; the members of a node come before those below them. */
export function describePaths(set: FieldSet): string[] {
  const paths: string[] = [];
  describe(set, '', paths);
  return paths;
}

function describe(set: FieldSet, prefix: string, paths: string[]): void {
  const described = sortElements(set.children.keys()).map((element) => ({
    path: prefix + describeElement(element),
    child: set.children.get(element)!,
  }));
  for (const { path, child } of described) if (child.member) paths.push(path);
  for (const { path, child } of described) describe(child, path, paths);
}
