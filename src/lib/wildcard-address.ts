/** Reports whether the address means all addresses of the machine. Clients cannot connect to such an address. */
export const isWildcard = (address: string) => address === '0.0.0.0' || address === '::';
