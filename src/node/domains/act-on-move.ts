/** Carries out what decide-outgoing.ts and decide-incoming.ts ask for. What takes long goes on in the background. */
import { invariant, unreachable } from '#lib/invariant.ts';
import type { ActParts } from '#node/domains/act.ts';
import type { DomainAction } from '#node/domains/domain-action.ts';
import type { DomainWorld } from '#node/domains/domain-world.ts';

type MoveAction = Extract<
  DomainAction,
  { readonly do: 'migrate' | 'abortMigration' | 'takeBack' | 'giveUp' | 'leave' | 'commit' | 'askOutcome' }
>;

/** Whether the domain is not what it was. */
export async function actOnMove(
  id: string,
  action: MoveAction,
  { vmi, domain }: DomainWorld,
  { hypervisor, migrations, events, node, log }: ActParts,
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
    case 'giveUp': {
      const message = `The guest that was left on node ${node.name} is switched off: it was given to node ${action.to}.`;
      log.warn({ domain: id, to: action.to }, 'switching off a guest that was given to another node meanwhile');
      await hypervisor.destroy(id);
      if (vmi !== undefined) events.record(vmi, { type: 'Warning', reason: 'GuestGivenUp', message });
      return true;
    }
    case 'leave':
      await hypervisor.leave(id);
      return true;
    case 'commit':
      await hypervisor.commit(id);
      migrations.wentOn(id, domain?.migration?.uid);
      return true;
    case 'askOutcome':
      invariant(domain !== undefined, 'what is stored is there');
      migrations.ask(domain);
      return false;
    default:
      return unreachable(action);
  }
}
