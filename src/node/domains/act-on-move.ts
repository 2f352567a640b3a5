/** Carries out what decide-outgoing.ts and decide-incoming.ts ask for. What takes long goes on in the background. */
import { invariant, unreachable } from '#lib/invariant.ts';
import type { ActParts } from '#node/domains/act.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';

type MoveAction = Extract<
  DomainAction,
  { readonly do: 'migrate' | 'abortMigration' | 'takeBack' | 'leave' | 'commit' | 'askOutcome' }
>;

/** Whether the domain is not what it was. */
export async function actOnMove(
  id: string,
  action: MoveAction,
  { vmi, domain }: DomainWorld,
  { hypervisor, migrations, log }: ActParts,
): Promise<boolean> {
  switch (action.do) {
    case 'migrate':
      invariant(vmi !== undefined, 'what migrates is the guest of an instance');
      migrations.begin(vmi);
      return false;
    case 'abortMigration':
      log.info({ domain: id, why: action.why }, 'giving up the migration of a guest');
      migrations.abort(id, action.why);
      return false;
    case 'takeBack':
      await hypervisor.takeBack(id);
      return true;
    case 'leave':
      await hypervisor.leave(id);
      return true;
    case 'commit':
      await hypervisor.commit(id);
      return true;
    case 'askOutcome':
      invariant(domain !== undefined, 'what is stored is there');
      migrations.ask(domain);
      return false;
    default:
      return unreachable(action);
  }
}
