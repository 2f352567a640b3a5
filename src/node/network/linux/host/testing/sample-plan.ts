/** The plan of a network with both families, or with the given subnets. */
import { planNetwork, type NetworkPlan } from '#node/network/linux/network-plan.ts';

export function aNetworkPlan(subnets: readonly string[] = ['10.244.0.0/16', 'fd12:3456:789a::/64']): NetworkPlan {
  return planNetwork({ metadata: { uid: 'sample', name: 'default' }, spec: { subnets: [...subnets] } } as never);
}
