/**
 * The host API of a node: the verbs of oVirt's hosts, one file for each. The endpoint and the socket decide who may
 * call them. A call never throws: invalid requests and failures are answered with a code and a message.
 *
 * VMs of the host API belong to their creator: they have no pod, and the agent only reads their devices. VMs of
 * launcher pods are listed; all other verbs refuse them, because the API server manages them.
 */
import { join } from 'node:path';
import { HOST_CODES, type HostAnswer, type HostVerb } from '#api/host-api.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import type { HostApi, HostCallOptions } from '#node/endpoint/endpoint-agent.ts';
import { refuseCall } from '#node/host-api/answers.ts';
import { createHostVm } from '#node/host-api/verbs/create.ts';
import { destroyHostVm } from '#node/host-api/verbs/destroy.ts';
import { openHostImages } from '#node/host-api/host-images.ts';
import type { HostParts, ReadParts } from '#node/host-api/host-parts.ts';
import { hotplugDevice } from '#node/host-api/verbs/hotplug.ts';
import { hotunplugDevice } from '#node/host-api/verbs/hotunplug.ts';
import { addCallNotes } from '#node/host-api/sent/key-rules.ts';
import { MonitorProbe } from '#node/host-api/monitor-probe.ts';
import { getAllVmStats, listHostVms } from '#node/host-api/verbs/read-verbs.ts';
import type { SentMap } from '#node/host-api/sent/sent-values.ts';
import { HostVmRecords } from '#node/host-api/host-vm-records.ts';
import { errorMessage } from '#lib/error-message.ts';

interface HostApiOptions extends Omit<HostParts, 'vms' | 'images' | 'monitors'> {
  /**
   * The directory of the node, with `host-images/` and `host-vms/`. Without one, only `list` and `getAllVmStats` work.
   */
  readonly dir: string | undefined;
  /** Default: /dev. */
  readonly devDir?: string;
}

/** Opens the host API. To be called after the hypervisor has adopted its domains. */
export async function openHostApi({ dir, devDir, ...options }: HostApiOptions): Promise<HostApi> {
  const parts = { ...options, monitors: new MonitorProbe(options) };
  if (dir === undefined) return createHostApi((verb, parameters) => answerReadVerb(verb, parameters, parts), parts.log);
  const vms = await HostVmRecords.open(join(dir, 'host-vms'), (id) => parts.hypervisor.get(id) !== undefined);
  const images = await openHostImages({ nodeDir: dir, ...(devDir === undefined ? {} : { devDir }) });
  const all: HostParts = { ...parts, vms, images };
  return createHostApi((verb, parameters, options) => answerVerb(verb, parameters, all, options), parts.log);
}

type VerbHandler = (verb: HostVerb, parameters: SentMap, options: HostCallOptions) => HostAnswer | Promise<HostAnswer>;

function createHostApi(handle: VerbHandler, log: Log): HostApi {
  return {
    async call(verb, parameters, options) {
      try {
        return addCallNotes(await handle(verb, parameters, options), verb, parameters);
      } catch (error) {
        if (!options.signal.aborted) log.error({ err: error, verb }, 'Cannot answer a call of the host API');
        return refuseCall(HOST_CODES.unexpected, errorMessage(error));
      }
    },
  };
}

function answerReadVerb(verb: HostVerb, parameters: SentMap, parts: ReadParts): HostAnswer | Promise<HostAnswer> {
  if (verb === 'list') return listHostVms(parameters, parts);
  if (verb === 'getAllVmStats') return getAllVmStats(parts);
  return refuseCall(HOST_CODES.unexpected, `this node does not serve ${verb}`);
}

function answerVerb(
  verb: HostVerb,
  parameters: SentMap,
  parts: HostParts,
  options: HostCallOptions,
): HostAnswer | Promise<HostAnswer> {
  switch (verb) {
    case 'list':
    case 'getAllVmStats':
      return answerReadVerb(verb, parameters, parts);
    case 'create':
      return createHostVm(parameters, parts, options);
    case 'destroy':
      return destroyHostVm(parameters, parts);
    case 'hotplugDisk':
      return hotplugDevice('disk', parameters, parts);
    case 'hotplugNic':
      return hotplugDevice('nic', parameters, parts);
    case 'hotunplugDisk':
      return hotunplugDevice('disk', parameters, parts, options);
    case 'hotunplugNic':
      return hotunplugDevice('nic', parameters, parts, options);
    default:
      return unreachable(verb);
  }
}
