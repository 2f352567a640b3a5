/**
 * The host API of a node: what the hosts of old answered to, one file for each verb. Whoever may ask is the endpoint's and
 * the socket's business. It never throws: what is wrong with a call, or goes wrong, is a code and a message.
 *
 * VMs of the host API belong to whoever created them: no pod stands behind them, and the agent only reads their devices.
 * VMs of launcher pods are listed, and otherwise left to the API server.
 */
import { join } from 'node:path';
import { HOST_CODES, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import type { HostApi, HostCallOptions } from '#node/endpoint/endpoint-agent.ts';
import { refused } from '#node/host-api/answers.ts';
import { create } from '#node/host-api/create.ts';
import { destroy } from '#node/host-api/destroy.ts';
import { openHostImages } from '#node/host-api/host-images.ts';
import type { HostParts, ReadParts } from '#node/host-api/host-parts.ts';
import { hotplug } from '#node/host-api/hotplug.ts';
import { hotunplug } from '#node/host-api/hotunplug.ts';
import { withCallNotes } from '#node/host-api/key-rules.ts';
import { MonitorWatch } from '#node/host-api/monitor-watch.ts';
import { getAllVmStats, list } from '#node/host-api/read-verbs.ts';
import type { SentMap } from '#node/host-api/sent-values.ts';
import { VmBook } from '#node/host-api/vm-book.ts';
import type { GuestUser } from '#node/volumes/volumes-host.ts';

export interface HostApiOptions extends Omit<HostParts, 'vms' | 'images' | 'monitors'> {
  /** The directory of the node: `host-images/` and `host-vms/` are in it. Without one, calls can only read. */
  readonly dir: string | undefined;
  readonly guestUser: GuestUser | undefined;
  /** /dev unless set. */
  readonly devDir?: string;
}

/** To be called when the hypervisor knows its domains. */
export async function openHostApi({ dir, guestUser, devDir, ...options }: HostApiOptions): Promise<HostApi> {
  const parts = { ...options, monitors: new MonitorWatch(options) };
  if (dir === undefined) return hostApi((verb, parameters) => read(verb, parameters, parts), parts.log);
  const vms = await VmBook.open(join(dir, 'host-vms'), (id) => parts.hypervisor.get(id) !== undefined);
  const images = await openHostImages({ nodeDir: dir, guestUser, ...(devDir === undefined ? {} : { devDir }) });
  const all: HostParts = { ...parts, vms, images };
  return hostApi((verb, parameters, options) => answer(verb, parameters, all, options), parts.log);
}

type Answer = (verb: HostVerb, parameters: SentMap, options: HostCallOptions) => HostAnswer | Promise<HostAnswer>;

function hostApi(answerTo: Answer, log: Log): HostApi {
  return {
    async call(verb, parameters, options) {
      try {
        return withCallNotes(await answerTo(verb, parameters, options), verb, parameters);
      } catch (error) {
        if (!options.signal.aborted) log.error({ err: error, verb }, 'Cannot answer a call of the host API');
        return refused(HOST_CODES.unexpected, error instanceof Error ? error.message : String(error));
      }
    },
  };
}

function read(verb: HostVerb, parameters: SentMap, parts: ReadParts): HostAnswer | Promise<HostAnswer> {
  if (verb === 'list') return list(parameters, parts);
  if (verb === 'getAllVmStats') return getAllVmStats(parts);
  return refused(HOST_CODES.unexpected, `this node does not serve ${verb}`);
}

function answer(
  verb: HostVerb,
  parameters: SentMap,
  parts: HostParts,
  options: HostCallOptions,
): HostAnswer | Promise<HostAnswer> {
  switch (verb) {
    case 'list':
    case 'getAllVmStats':
      return read(verb, parameters, parts);
    case 'create':
      return create(parameters, parts, options);
    case 'destroy':
      return destroy(parameters, parts);
    case 'hotplugDisk':
      return hotplug('disk', parameters, parts);
    case 'hotplugNic':
      return hotplug('nic', parameters, parts);
    case 'hotunplugDisk':
      return hotunplug('disk', parameters, parts, options);
    case 'hotunplugNic':
      return hotunplug('nic', parameters, parts, options);
    default:
      return unreachable(verb);
  }
}
