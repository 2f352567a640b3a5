/** virtctl expose */
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { defineCommand } from '#cli/command.ts';
import {
  buildService,
  DEFAULT_PROTOCOL,
  DEFAULT_TYPE,
  parseExposedKind,
  parseExposeFlags,
  type ExposedKind,
  type ExposedObject,
  type ExposedSpec,
} from '#cli/commands/expose/new-service.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { readObject } from '#cli/connection/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import { SERVICES } from '#kube/cluster-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { LabelSelector } from '#kube/selectors/label-selector.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import { integerFlag, requiredFlag, textFlag } from '#lib/command-line/flag.ts';

interface ReplicaSet extends KubeObject {
  spec?: { template?: { spec?: ExposedSpec }; selector?: LabelSelector };
}

/** Selfsame has no replica sets, but the command also works on clusters with KubeVirt. */
const REPLICA_SETS: ResourceType<ReplicaSet> = {
  group: KUBEVIRT_GROUP,
  version: 'v1',
  kind: 'VirtualMachineInstanceReplicaSet',
  plural: 'virtualmachineinstancereplicasets',
  namespaced: true,
};

export const expose = defineCommand({
  name: 'expose',
  usage: '(TYPE) (NAME)',
  summary:
    'Expose a virtual machine instance, virtual machine, or virtual machine instance replica set as a new service.',
  details: [
    'Creates a Service that selects the virtual machine. Without --port, the service has all ports that the interface of',
    'the pod network names. TYPE is virtualmachineinstance (vmi), virtualmachine (vm) or virtualmachineinstancereplicaset',
    '(vmirs), in singular or plural. The selector of a replica set may only have matchLabels.',
  ].join('\n'),
  example: [
    "  # Expose SSH to a virtual machine instance called 'myvm' on each node via a NodePort service:",
    '  virtctl expose vmi myvm --port=22 --name=myvm-ssh --type=NodePort',
    '',
    "  # Expose port 8080 of a virtual machine called 'myvm' as port 80:",
    '  virtctl expose vm myvm --port=80 --target-port=8080 --name=myvm-http',
    '',
    '  # Expose all defined pod-network ports of a virtual machine instance replicaset on a service:',
    '  virtctl expose vmirs myvmirs --name=vmirs-service',
  ].join('\n'),
  flags: {
    name: requiredFlag({ name: 'name', help: 'Name of the service.' }, 'string'),
    port: integerFlag({ name: 'port', help: 'The port that the service should serve on.' }, 0),
    targetPort: textFlag(
      { name: 'target-port', help: 'Name or number of the port on the VM; --port by default.' },
      'string',
    ),
    protocol: textFlag(
      {
        name: 'protocol',
        help: 'The network protocol: TCP or UDP.',
        completes: ['TCP', 'UDP'],
        defaultText: DEFAULT_PROTOCOL,
      },
      'string',
    ),
    portName: textFlag({ name: 'port-name', help: 'Name of the port.' }, 'string'),
    type: textFlag(
      {
        name: 'type',
        help: 'Type of the service: ClusterIP, NodePort, or LoadBalancer.',
        completes: ['ClusterIP', 'NodePort', 'LoadBalancer'],
        defaultText: DEFAULT_TYPE,
      },
      'string',
    ),
    nodePort: integerFlag({ name: 'node-port', help: 'Port of the service on each node.' }, 0),
    clusterIp: textFlag(
      { name: 'cluster-ip', help: "Address of the service; 'None' for a headless service; allocated by default." },
      'string',
    ),
    externalIp: textFlag(
      { name: 'external-ip', help: 'Additional external IP address that is routed to a node.' },
      'string',
    ),
    loadBalancerIp: textFlag({ name: 'load-balancer-ip', help: 'Address of the load balancer.' }, 'string'),
    ipFamily: textFlag(
      {
        name: 'ip-family',
        help: 'IP families of the service: IPv4, IPv6, IPv4,IPv6 or IPv6,IPv4.',
        completes: ['IPv4', 'IPv6', 'IPv4,IPv6', 'IPv6,IPv4'],
      },
      'string',
    ),
    ipFamilyPolicy: textFlag(
      {
        name: 'ip-family-policy',
        help: 'IP family policy: SingleStack, PreferDualStack or RequireDualStack.',
        completes: ['SingleStack', 'PreferDualStack', 'RequireDualStack'],
      },
      'string',
    ),
  },
  args: 2,
  completes: [['vm', 'vmi', 'vmirs'], 'vm'],
  async run({ flags, args: [type = '', name = ''], connect, print }) {
    const kind = parseExposedKind(type);
    const wanted = parseExposeFlags(flags);
    const api = await connect();
    const exposed = await readExposed(api, kind, name);
    const service = buildService(wanted, exposed, api.namespace);
    await explainFailure(
      `Cannot create Service ${flags.name}: `,
      api.post(collectionPath(SERVICES, api.namespace), service),
    );
    print(`Service ${flags.name} successfully created for ${type.toLowerCase()} ${name}`);
  },
});

async function readExposed(api: ApiConnection, kind: ExposedKind, name: string): Promise<ExposedObject> {
  const read = <T extends KubeObject>(type: ResourceType<T>) =>
    explainFailure(`Cannot read ${type.kind} ${name}: `, readObject(api, type, name));
  switch (kind) {
    case 'vmi':
      return { kind, name, spec: (await read(VIRTUAL_MACHINE_INSTANCES)).spec };
    case 'vm':
      return { kind, name, spec: (await read(VIRTUAL_MACHINES)).spec.template.spec };
    case 'vmirs': {
      const { spec } = await read(REPLICA_SETS);
      return { kind, name, spec: spec?.template?.spec, selector: spec?.selector };
    }
  }
}
