/** Decides whether a volume was plugged into a running guest, or released by it. Pure. */
import { isFinal, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { WaitState } from '#cli/wait/wait-until.ts';

interface VolumeView {
  readonly vm: string;
  readonly volume: string;
  /** The instance now, if there is one. */
  readonly vmi: VirtualMachineInstance | undefined;
}

export function judgePlugged({ vm, volume, vmi }: VolumeView): WaitState {
  if (vmi === undefined || isFinal(vmi)) {
    return { failed: `Cannot confirm that volume ${volume} is plugged in: VM ${vm} stopped meanwhile` };
  }
  const state = stateOf(vmi, volume);
  if (state?.phase === 'Ready') return { done: `Volume ${volume} is plugged into VM ${vm}` };
  return { waiting: stateText(volume, state) };
}

export function judgeUnplugged({ vm, volume, vmi }: VolumeView): WaitState {
  if (vmi === undefined || isFinal(vmi)) return { done: `VM ${vm} stopped meanwhile, without volume ${volume}` };
  const state = stateOf(vmi, volume);
  const isNamed = vmi.spec.volumes?.some(({ name }) => name === volume) === true;
  const isPlugged = vmi.status?.hotplug?.some(({ device }) => device === `disk-${volume}`) === true;
  if (state !== undefined || isNamed || isPlugged) return { waiting: stateText(volume, state) };
  return { done: `Volume ${volume} is unplugged from VM ${vm}` };
}

type VolumeState = NonNullable<NonNullable<VirtualMachineInstance['status']>['volumeStatus']>[number];

function stateOf({ status }: VirtualMachineInstance, volume: string): VolumeState | undefined {
  return status?.volumeStatus?.find(({ name }) => name === volume);
}

function stateText(volume: string, state: VolumeState | undefined): string {
  const why = state?.message || state?.reason;
  return `volume ${volume}: ${state?.phase ?? 'Pending'}${why ? ` (${why})` : ''}`;
}
