/**
 * Measures the memory that server and agent need per running VM, without QEMU: with some guests, and before they exist.
 * The guests are real but paused from their start (as with `virtctl start --paused`), so that they do not compete for
 * the CPU.
 */
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { memoryBytes } from '../proc-files.ts';
import type { Row } from '../report.ts';
import { managerMemory, memoryNote, residentBytes, COLLECT_GARBAGE } from './manager-memory.ts';
import { NAMESPACE, smallVm } from './manifests.ts';
import { findProcessesIn } from './processes-in-dir.ts';
import { StartMarks } from './start-marks.ts';
import type { VmBench } from './vm-bench.ts';

const MAX_BYTES_PER_VM = 10e6;

export async function measureMemory(bench: VmBench, vms: number): Promise<Row[]> {
  await bench.startPlane({ nodes: 1, hypervisor: 'qemu', nodeOptions: COLLECT_GARBAGE });
  const before = await managerMemory(bench);
  const [client, transport] = [await bench.client(), await bench.transport()];
  const marks = await StartMarks.open(client);
  for (let at = 0; at < vms; at++) {
    const name = `small-${at}`;
    await client.create(VIRTUAL_MACHINES, smallVm(name));
    const path = verbPath('virtualmachines', NAMESPACE, name, 'start');
    await transport.request({ method: 'PUT', path, body: { paused: true } });
    await marks.timeOf(name, 'podRunning');
  }
  marks.stop();
  const after = await managerMemory(bench);
  const guests = findProcessesIn(bench.dir).filter(({ words }) => words[0]?.includes('qemu-system'));
  if (guests.length !== vms) throw new Error(`${vms} VMs were started, but there are ${guests.length} guests`);
  const guestBytes = guests.reduce((sum, { pid }) => sum + memoryBytes(pid, 'VmRSS'), 0) / vms;
  return [
    {
      what: `managers' RSS with ${vms} guests`,
      unit: 'bytes',
      engine: residentBytes(after),
      floor: residentBytes(before),
      bar: { moreThanFloor: MAX_BYTES_PER_VM * vms },
      note: `${memoryNote(before, after, vms)}; a QEMU process, not counted, has ${Math.round(guestBytes / 1e6)} MB`,
    },
  ];
}
