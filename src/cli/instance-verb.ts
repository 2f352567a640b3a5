/** What pause, unpause, soft-reboot and reset share: one verb of an instance, named by itself or through its VM. */
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { messageOf } from '#cli/message-of.ts';
import { objectPath, verbPath } from '#cli/verb-path.ts';
import { isApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';

export interface InstanceVerb {
  /** As the API has it, and as the user says it. */
  readonly verb: 'pause' | 'unpause' | 'softreboot' | 'reset';
  readonly said: 'pause' | 'unpause' | 'soft-reboot' | 'reset';
  /** `Error <doing> VirtualMachineInstance`. */
  readonly doing: 'pausing' | 'unpausing' | 'soft rebooting' | 'resetting';
}

/** The first argument of pause and unpause. Throws CommandError. */
export function namedKind(word: string): 'vm' | 'vmi' {
  const kind = word.toLowerCase();
  if (/^(?:vms?|virtualmachines?)$/.test(kind)) return 'vm';
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(kind)) return 'vmi';
  throw new CommandError(`unsupported resource type ${JSON.stringify(word)}; expected vm or vmi`);
}

/** The line that tells of success. Throws CommandError. */
export async function askInstance(
  api: ApiConnection,
  { verb, said, doing }: InstanceVerb,
  name: string,
  body: object,
): Promise<string> {
  try {
    await api.put(verbPath('virtualmachineinstances', api.namespace, name, verb), body);
  } catch (cause) {
    throw new CommandError(`Error ${doing} VirtualMachineInstance ${name}: ${messageOf(cause)}`, { cause });
  }
  return `VMI ${name} was scheduled to ${said}`;
}

/** Like askInstance, for a VM, with what the VM says about a missing instance. */
export async function askInstanceOfVm(
  api: ApiConnection,
  verb: InstanceVerb,
  name: string,
  body: object,
): Promise<string> {
  let vm: unknown;
  try {
    vm = await api.get(objectPath('virtualmachines', api.namespace, name));
  } catch (cause) {
    throw new CommandError(`Error getting VirtualMachine ${name}: ${messageOf(cause)}`, { cause });
  }
  try {
    return await askInstance(api, verb, name, body);
  } catch (error) {
    if (!(error instanceof CommandError) || !isApiError(error.cause, 'NotFound')) throw error;
    const what = `Error ${verb.doing} VirtualMachineInstance ${name}`;
    const why = isHalted(vm) ? `. VirtualMachine ${name} is not set to run` : ' was not found';
    throw new CommandError(what + why, { cause: error });
  }
}

function isHalted(vm: unknown): boolean {
  const spec = isRecord(vm) && isRecord(vm['spec']) ? vm['spec'] : {};
  return spec['runStrategy'] === 'Halted' || spec['running'] === false;
}
