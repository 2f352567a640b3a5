/** Reads the host API of nodes for the device map over their HTTPS endpoints, with a size limit and metrics. */
import { hostPath } from '#api/host-api.ts';
import { type HostReader, buildListRequest, parseListResponse } from '#controllers/device-map/host-reader.ts';
import { ignoreReads } from '#client/read-scope.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';

const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export const LIST_CALLS = 'selfsame_host_list_calls_total';
export const LIST_VMS = 'selfsame_host_list_vms_total';
export const LIST_BYTES = 'selfsame_host_list_bytes_total';

export function createHostReader(nodes: Pick<NodeConnections, 'post'>, metrics: MetricRegistry): HostReader {
  const counter = (name: string, help: string) => metrics.counter({ name, help, labels: ['node'] });
  const calls = counter(LIST_CALLS, 'Number of requests to nodes for the devices of their guests');
  const vms = counter(LIST_VMS, 'Number of guests in the responses to these requests');
  const bytes = counter(LIST_BYTES, 'Bytes of these requests and responses');
  return {
    async list(node, vmIds, { signal }) {
      const body = buildListRequest(vmIds);
      calls.add({ node });
      bytes.add({ node }, body.length);
      const path = hostPath('list');
      const request = { node, path, body, maxAnswerBytes: MAX_ANSWER_BYTES, signal };
      const answer = await ignoreReads(() => nodes.post(request));
      bytes.add({ node }, answer.length);
      const reported = parseListResponse(answer);
      vms.add({ node }, reported.length);
      return reported;
    },
  };
}
