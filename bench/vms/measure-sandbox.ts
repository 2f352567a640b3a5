/** Measures what the sandbox adds to the start of a guest: the same guest started in a sandbox and without one, in turns. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { keepAlive } from '#lib/keep-alive.ts';
import { silentLog } from '#lib/log.ts';
import { createQemuHypervisor } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import type { Row } from '../report.ts';
import { median } from '../statistics.ts';
import type { VmBench } from './vm-bench.ts';

const MAX_MORE_MS = 60;

export async function measureSandbox({ dir }: Pick<VmBench, 'dir'>, rounds: number): Promise<Row[]> {
  if (process.getuid?.() !== 0) throw new Error('Cannot measure sandboxes: they require root');
  const starts = { with: [] as number[], without: [] as number[] };
  const start = (kind: keyof typeof starts) => keepAlive(() => startOnce(kind));
  const startOnce = async (kind: keyof typeof starts): Promise<number> => {
    const nodeDir = join(dir, `sandbox-${kind}`);
    await mkdir(nodeDir, { recursive: true });
    const hypervisor = createQemuHypervisor({
      ...{ dir: join(nodeDir, 'domains'), accel: 'tcg', clock: systemClock, log: silentLog },
      sandboxed: kind === 'with',
    });
    await hypervisor.adopt();
    const definition = aDefinition();
    const from = performance.now();
    await hypervisor.create(definition);
    const ms = performance.now() - from;
    await hypervisor.destroy(definition.id);
    await hypervisor.remove(definition.id);
    await hypervisor.close();
    await rm(nodeDir, { recursive: true });
    return ms;
  };
  for (const kind of ['with', 'without'] as const) await start(kind);
  for (let round = 0; round < rounds; round++) {
    for (const kind of round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const)) {
      starts[kind].push(await start(kind));
    }
  }
  const [engine, floor] = [median(starts.with), median(starts.without)];
  return [{ what: 'start of a guest in its sandbox', unit: 'ms', engine, floor, bar: { moreThanFloor: MAX_MORE_MS } }];
}
