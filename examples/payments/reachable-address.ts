import { BlockList, isIP } from 'node:net'

/** RFC 6890 and the IANA registries behind it: addresses with a special purpose; and multicast. */
const SPECIAL_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4'],
]
/** Of IPv6 only global unicast is public, and of that not what leads elsewhere: protocols, documentation, 6to4. */
const GLOBAL_IPV6 = ['2000::/3']
const SPECIAL_IPV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']

const specialIPv4 = listOf(SPECIAL_IPV4, 'ipv4')
const globalIPv6 = listOf(GLOBAL_IPV6, 'ipv6')
const specialIPv6 = listOf(SPECIAL_IPV6, 'ipv6')
const loopbackIPv4 = listOf(['127.0.0.0/8'], 'ipv4')

/** Whether an address is on the Internet: not this machine's, not of its network, not a cloud's metadata. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !specialIPv4.check(address, 'ipv4')
  // An address with a zone (%) is link-local.
  if (isIP(address) !== 6 || address.includes('%')) return false
  return globalIPv6.check(address, 'ipv6') && !specialIPv6.check(address, 'ipv6')
}

/** Whether an address is this machine's alone. */
export function isLoopback(address: string): boolean {
  return address === '::1' || (isIP(address) === 4 && loopbackIPv4.check(address, 'ipv4'))
}

function listOf(subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/')
    list.addSubnet(address, Number(bits), family)
  }
  return list
}
