/** Shared by pause, unpause, soft-reboot and reset: sends a verb to an instance, which is named directly or by its VM. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#cli/parsing/flags.ts';
import { errorMessage } from '#lib/error-message.ts';
import { vmPath, verbPath } from '#cli/connection/verb-path.ts';
import { isApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

export interface InstanceCommandVerb {
  /** The verb of the API. */
  readonly verb: 'pause' | 'unpause' | 'softreboot' | 'reset';
  /** The verb in messages. */
  readonly word: 'pause' | 'unpause' | 'soft-reboot' | 'reset';
  /** Used in `Error <gerund> VirtualMachineInstance`. */
  readonly gerund: 'pausing' | 'unpausing' | 'soft rebooting' | 'resetting';
}

/** Parses the first argument of pause and unpause. Throws CommandError. */
export function parseKindWord(word: string): 'vm' | 'vmi' {
  const kind = word.toLowerCase();
  if (/^(?:vms?|virtualmachines?)$/.test(kind)) return 'vm';
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(kind)) return 'vmi';
  throw new CommandError(`unsupported resource type ${JSON.stringify(word)}; expected vm or vmi`);
}

/** Sends the verb and returns the message of success. Throws CommandError. */
export async function sendInstanceVerb(
  api: ApiConnection,
  { verb, word, gerund }: InstanceCommandVerb,
  name: string,
  body: object,
): Promise<string> {
  try {
    await api.put(verbPath('virtualmachineinstances', api.namespace, name, verb), body);
  } catch (cause) {
    throw new CommandError(`Error ${gerund} VirtualMachineInstance ${name}: ${errorMessage(cause)}`, { cause });
  }
  return `VMI ${name} was scheduled to ${word}`;
}

/** Like sendInstanceVerb, for the instance of a VM. The error explains why there is no instance. */
export async function sendInstanceVerbOfVm(
  api: ApiConnection,
  verb: InstanceCommandVerb,
  name: string,
  body: object,
): Promise<string> {
  let vm: unknown;
  try {
    vm = await api.get(vmPath('virtualmachines', api.namespace, name));
  } catch (cause) {
    throw new CommandError(`Error getting VirtualMachine ${name}: ${errorMessage(cause)}`, { cause });
  }
  try {
    return await sendInstanceVerb(api, verb, name, body);
  } catch (error) {
    if (!(error instanceof CommandError) || !isApiError(error.cause, 'NotFound')) throw error;
    const what = `Error ${verb.gerund} VirtualMachineInstance ${name}`;
    const why = isHalted(vm) ? `. VirtualMachine ${name} is not set to run` : ' was not found';
    throw new CommandError(what + why, { cause: error });
  }
}

function isHalted(vm: unknown): boolean {
  const spec = isRecord(vm) && isRecord(vm['spec']) ? vm['spec'] : {};
  return spec['runStrategy'] === 'Halted' || spec['running'] === false;
}
