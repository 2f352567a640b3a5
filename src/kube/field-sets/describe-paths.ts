/** Field paths for people, as conflicts of server-side apply show them. */
import type { FieldSet } from './field-set.ts';
import { describeElement, sortedElements } from './path-element.ts';

/** `.spec.containers[name="web"].image`, each member once: those of a node before what lies below them. */
export function describePaths(set: FieldSet): string[] {
  const paths: string[] = [];
  describe(set, '', paths);
  return paths;
}

function describe(set: FieldSet, prefix: string, paths: string[]): void {
  const described = sortedElements(set.children.keys()).map((element) => ({
    path: prefix + describeElement(element),
    child: set.children.get(element)!,
  }));
  for (const { path, child } of described) if (child.member) paths.push(path);
  for (const { path, child } of described) describe(child, path, paths);
}
