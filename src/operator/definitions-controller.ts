/** Keeps the definitions of our kinds in place. Nothing else of ours can be before they are. */
import type { Informer } from '#client/informer.ts';
import { isTrue } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import { repair, type Desired } from '#operator/desired.ts';
import { DEFINITIONS, type Reporting } from '#operator/kinds.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { watched } from '#operator/watched.ts';
import { defineController, type ControllerDefinition } from '#runtime/controller.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

interface DefinitionWorld {
  readonly wanted: Desired;
  readonly present: Stored | undefined;
}

const byName = new Map(definitions.map((wanted) => [wanted.object.metadata.name ?? '', wanted]));

export function definitionsController(present: Informer<Reporting>): ControllerDefinition<DefinitionWorld> {
  return defineController<DefinitionWorld>({
    name: 'operator-definitions',
    type: DEFINITIONS,
    sources: [watched(present, definitions, (name) => name)],
    observe(name) {
      const wanted = byName.get(name);
      return wanted && { wanted, present: present.get(name) };
    },
    decide: decideDefinition,
    subject: () => undefined,
  });
}

function decideDefinition({ wanted, present }: DefinitionWorld): Plan {
  const change = repair(wanted, present);
  return change === undefined ? NOTHING : { changes: [change] };
}

/** Whether all of our kinds are served. Who watches them earlier only gets errors. */
export function definitionsEstablished(present: Informer<Reporting>): boolean {
  return [...byName.keys()].every((name) => isTrue(present.get(name)?.status?.conditions, 'Established'));
}
