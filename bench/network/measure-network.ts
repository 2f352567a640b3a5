/**
 * Measures the network of guests. All of it runs in a process of its own, in network, process and mount namespaces that
 * end with it: nothing changes on the machine, and nothing remains.
 */
import { JobProcess } from '../jobs.ts';
import type { Row } from '../report.ts';
import type { NetworkJob } from './network-jobs.ts';

export interface NetworkOptions {
  /** Namespaces with addresses, without guests. */
  readonly namespaces: number;
  /** Starts of a VM with and without the network. */
  readonly starts: number;
  /** Rounds of each transfer; the medians count. */
  readonly rounds: number;
  /** The size of a transfer, in blocks of 64 KiB. */
  readonly blocks: number;
  readonly pings: number;
  readonly migrations: number;
}

const SETUP =
  'for d in /run/netns /run/selfsame; do mkdir -p $d && mount -t tmpfs tmpfs $d; done && ip link set dev lo up && "$@"';
/** The shell stays, because it reaps the processes that others leave behind. */
const OWN_NAMESPACES = [
  ...['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'],
  ...['sh', '-c', SETUP, 'sh'],
];
const KINDS = ['attach', 'start', 'gap', 'traffic'] as const;

export async function* measureNetwork(options: NetworkOptions): AsyncGenerator<Row> {
  if (process.getuid?.() !== 0) throw new Error('Cannot measure the network of guests: only root can make namespaces');
  for (const kind of KINDS) {
    const jobs = new JobProcess<NetworkJob>('./network/network-jobs.ts', { within: OWN_NAMESPACES });
    try {
      yield* await jobs.run<Row[]>({ kind, options });
    } finally {
      await jobs.stop();
    }
  }
}
