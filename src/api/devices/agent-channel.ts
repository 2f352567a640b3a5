/**
 * The virtio-serial channel between a guest and its node on which the guest agent answers, and which specs ask for it
 * (ADR 15).
 */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

/** Name of the port in the guest; libvirt and KubeVirt use the same. */
export const AGENT_PORT_NAME = 'org.qemu.guest_agent.0';
/** `true` in the template of a VM that was recorded without the channel adds the channel at the next start. */
const AGENT_CHANNEL_ANNOTATION = 'selfsame.io/guest-agent';

interface AgentRequester {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: VmiSpec;
}

/** Reports whether the spec asks for the channel, by annotation or by a probe. New VMs have the channel in any case. */
export function asksForAgent({ metadata, spec }: AgentRequester): boolean {
  if (metadata.annotations?.[AGENT_CHANNEL_ANNOTATION] === 'true') return true;
  return [spec.livenessProbe, spec.readinessProbe].some(
    (probe) => probe?.guestAgentPing !== undefined || probe?.exec !== undefined,
  );
}
