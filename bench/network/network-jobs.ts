/** The process that measures the network of guests, in namespaces of its own (measure-network.ts). */
import { serveJobs } from '../jobs.ts';
import type { Row } from '../report.ts';
import { VmBench } from '../vms/vm-bench.ts';
import { measureAttach } from './measure-attach.ts';
import { measureGap } from './measure-gap.ts';
import type { NetworkOptions } from './measure-network.ts';
import { measureNetworkStart } from './measure-network-start.ts';
import { measureTraffic } from './measure-traffic.ts';

export interface NetworkJob {
  readonly kind: 'attach' | 'start' | 'traffic' | 'gap';
  readonly options: NetworkOptions;
}

serveJobs(async ({ kind, options }: NetworkJob): Promise<Row[]> => {
  if (kind === 'attach') return await measureAttach(options.namespaces);
  const benches = kind === 'start' ? [await VmBench.prepare(), await VmBench.prepare()] : [await VmBench.prepare()];
  try {
    const [bench, other] = benches;
    if (bench === undefined) return [];
    if (kind === 'traffic') return await measureTraffic(bench, options);
    if (kind === 'gap') return await measureGap(bench, options.migrations);
    return other === undefined ? [] : await measureNetworkStart({ connected: bench, userMode: other }, options.starts);
  } finally {
    for (const bench of benches) await bench.tearDown();
  }
});
