/**
 * The AgentCertificate resource of our aggregated API. A node on an existing cluster posts its public key and gets the
 * certificate that identifies it to our components and to the agents of other nodes. The API server authenticates the
 * node.
 */
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export const AGENT_CERTIFICATES = 'agentcertificates';

export interface AgentCertificate extends KubeObject {
  spec: {
    /** PEM of the SubjectPublicKeyInfo. */
    publicKey: string;
    /** IP addresses and DNS names of the agent. */
    hosts: string[];
  };
  status?: {
    /** PEM. */
    certificate: string;
    /** PEM of the certificate authorities that the agent should trust. */
    authorities: string;
  };
}

export const AGENT_CERTIFICATE: ResourceType<AgentCertificate> = {
  group: SUBRESOURCES_GROUP,
  version: 'v1',
  kind: 'AgentCertificate',
  plural: AGENT_CERTIFICATES,
  namespaced: false,
};
