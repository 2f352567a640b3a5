/** The command line of the benchmark, parsed into how long and how often everything is measured. */
import { parseArgs } from 'node:util';
import type { DeviceMapOptions } from './device-map/measure-device-map.ts';
import type { DeletionOptions } from './delete-protection/measure-deletions.ts';
import type { HostileOptions } from './hostile/measure-hostile.ts';
import type { NetworkOptions } from './network/measure-network.ts';
import type { TransitionOptions } from './machine-types/measure-transition.ts';

const ENGINE_TOPICS = ['footprint', 'get', 'list', 'create', 'patch', 'watch', 'admission', 'apiserver'] as const;
export const VM_TOPICS = ['vm-start', 'vm-sandbox', 'vm-memory', 'vm-migration', 'vm-fleet'] as const;
export type VmTopic = (typeof VM_TOPICS)[number];
/** Has rows from its own plane. */
export const TRANSITION_TOPIC = 'machine-types';
/** Has rows from its own plane. */
export const HOSTILE_TOPIC = 'hostile';
/** Has rows from planes of its own, in namespaces of its own. */
export const NETWORK_TOPIC = 'network';
/** Topics with their own tables. */
export const TABLE_TOPICS = ['delete-protection', 'device-map'] as const;
export type TableTopic = (typeof TABLE_TOPICS)[number];
export type Topic =
  | (typeof ENGINE_TOPICS)[number]
  | VmTopic
  | typeof TRANSITION_TOPIC
  | typeof HOSTILE_TOPIC
  | typeof NETWORK_TOPIC
  | TableTopic;
export const TOPICS: readonly Topic[] = [
  ...ENGINE_TOPICS,
  ...VM_TOPICS,
  TRANSITION_TOPIC,
  HOSTILE_TOPIC,
  NETWORK_TOPIC,
  ...TABLE_TOPICS,
];

export interface Options {
  readonly quick: boolean;
  readonly topics: ReadonlySet<Topic>;
  readonly jsonFile: string | undefined;
  readonly profileDir: string | undefined;
  /** The kubeconfig of an API server to compare the engine with. */
  readonly beside: string | undefined;
  /** The number of rounds in which floor and engine alternate; the medians count. */
  readonly rounds: number;
  readonly warmMs: number;
  readonly measureMs: number;
  readonly starts: number;
  readonly watchWrites: number;
  /** Rounds with 400 deletes per guard with many clients; half as many with one client. */
  readonly admissionRounds: number;
  /** Starts of a VM, by the plane and manually. */
  readonly vmStarts: number;
  /** Migrations, by the plane and manually. */
  readonly vmMigrations: number;
  /** Real guests for the memory of server and agents. */
  readonly guests: number;
  /** Simulated VMs. */
  readonly fleet: number;
  readonly transition: TransitionOptions;
  readonly hostile: HostileOptions;
  readonly network: NetworkOptions;
  readonly deletions: DeletionOptions;
  readonly deviceMap: DeviceMapOptions;
}

export const USAGE = `Usage: npm run bench -- [options]
  --quick           one short round of everything, under a minute
  --only TOPICS     a comma-separated list of ${TOPICS.join(', ')};
                                        vms for all topics about VMs
    --beside FILE     the kubeconfig of a kube-apiserver on this machine: the topic apiserver measures it in the same run;
                      its parcels are not removed
    --json FILE       also writes the figures to FILE
    --profile DIR     writes CPU profiles of the engine to DIR (which slows it down); read them with bench/top-functions.ts
`;

/** Throws an Error if the command line is invalid. */
export function parseOptions(args: readonly string[]): Options & { readonly help: boolean } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'string' },
      beside: { type: 'string' },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  return {
    help: values.help,
    quick: values.quick,
    topics: new Set(values.only === undefined ? TOPICS : values.only.split(',').flatMap(parseTopic)),
    jsonFile: values.json,
    profileDir: values.profile,
    beside: values.beside,
    ...(values.quick
      ? { rounds: 1, warmMs: 400, measureMs: 1000, starts: 1, watchWrites: 400, admissionRounds: 5 }
      : { rounds: 3, warmMs: 700, measureMs: 1500, starts: 3, watchWrites: 800, admissionRounds: 24 }),
    ...(values.quick
      ? { vmStarts: 3, vmMigrations: 3, guests: 5, fleet: 500 }
      : { vmStarts: 8, vmMigrations: 9, guests: 20, fleet: 5000 }),
    hostile: { quietMs: values.quick ? 1000 : 3000 },
    network: values.quick
      ? { namespaces: 50, starts: 3, rounds: 3, blocks: 512, pings: 50, migrations: 3 }
      : { namespaces: 200, starts: 8, rounds: 7, blocks: 2048, pings: 200, migrations: 10 },
    transition: values.quick ? { vms: 500, rounds: 1 } : { vms: 5000, rounds: 3 },
    deviceMap: values.quick ? { vms: 500, changed: 100, restMs: 5000 } : { vms: 10_000, changed: 100, restMs: 30_000 },
    deletions: values.quick
      ? { runs: 2, batches: makeBatches({ many: 40, few: 10, times: [1, 2, 1] }), kubectlVms: 15, rehearsals: 200 }
      : { runs: 5, batches: makeBatches({ many: 400, few: 40, times: [2, 15, 4] }), kubectlVms: 40, rehearsals: 4000 },
  };
}

/** The batches of the original comparison: many and few stopped VMs, and few running ones. */
function makeBatches({ many, few, times }: { many: number; few: number; times: [number, number, number] }) {
  return [
    { count: many, running: false, times: times[0] },
    { count: few, running: false, times: times[1] },
    { count: few, running: true, times: times[2] },
  ];
}

function parseTopic(name: string): readonly Topic[] {
  if (name === 'vms') return VM_TOPICS;
  const found = TOPICS.find((known) => known === name);
  if (found === undefined) throw new Error(`Unknown topic "${name}"; expected one of ${TOPICS.join(', ')}, vms`);
  return [found];
}
