/**
 * What a running VM costs its managers, beyond QEMU: server and agent with some guests, and before they were there. The
 * guests are real but paused from their start on (as `virtctl start --paused` does it): else they would fight for the
 * processor with what is measured.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { verbPath } from '#cli/verb-path.ts';
import { memoryBytes } from '../proc-files.ts';
import type { Row } from '../report.ts';
import { managerMemory, memoryNote, residentBytes, SETTLING } from './manager-memory.ts';
import { NAMESPACE, smallVm } from './manifests.ts';
import { processesBelow } from './processes-below.ts';
import { StartMarks } from './start-marks.ts';
import type { VmGround } from './vm-ground.ts';

const MAX_BYTES_PER_VM = 10e6;

export async function measureMemory(ground: VmGround, vms: number): Promise<Row[]> {
  await ground.startPlane({ nodes: 1, hypervisor: 'qemu', nodeOptions: SETTLING });
  const before = await managerMemory(ground);
  const [client, transport] = [await ground.client(), await ground.transport()];
  const marks = await StartMarks.open(client);
  for (let at = 0; at < vms; at++) {
    const name = `small-${at}`;
    await client.create(VIRTUAL_MACHINES, smallVm(name));
    const path = verbPath('virtualmachines', NAMESPACE, name, 'start');
    await transport.request({ method: 'PUT', path, body: { paused: true } });
    await marks.of(name, 'podRunning');
  }
  marks.stop();
  const after = await managerMemory(ground);
  const guests = processesBelow(ground.dir).filter(({ words }) => words[0]?.includes('qemu-system'));
  if (guests.length !== vms) throw new Error(`${vms} VMs were started, but ${guests.length} guests run`);
  const guestBytes = guests.reduce((sum, { pid }) => sum + memoryBytes(pid, 'VmRSS'), 0) / vms;
  return [
    {
      what: `managers' RSS with ${vms} guests`,
      unit: 'bytes',
      engine: residentBytes(after),
      floor: residentBytes(before),
      bar: { moreThanFloor: MAX_BYTES_PER_VM * vms },
      note: `${memoryNote(before, after, vms)}; a QEMU, not counted, has ${Math.round(guestBytes / 1e6)} MB`,
    },
  ];
}
