import { isIP, isIPv6 } from 'node:net'
import type { RequestHandler } from 'express'
import { ServiceProblem } from './problems.js'

/** Names of this machine, and addresses at which it is reached by them. */
const LOCAL = ['localhost', '127.0.0.1', '0.0.0.0', '::']

/** Where a browser on this machine finds what listens at an address. */
export function originAt(host: string, port: number): string {
  if (LOCAL.includes(host)) return `http://localhost:${port}`
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`
}

/**
 * Refuses requests that name another host. A page of somebody else can let a name of its own lead to this machine (DNS
 * rebinding), and is then, to the browser, of one origin with this service; but its requests still name that name. An
 * address is no name, and `localhost` is nobody else's.
 */
export function onlyOwnHost(listensOn: string | undefined): RequestHandler {
  const isOwn = (name: string) =>
    isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || /^(.+\.)?localhost$/.test(name) || name === listensOn?.toLowerCase()
  return (req, _res, next) => {
    if (!isOwn((req.hostname ?? '').toLowerCase())) throw misdirected()
    next()
  }
}

/** RFC 9110 §15.5.20: "unable or unwilling to produce an authoritative response for the target URI". */
function misdirected(): ServiceProblem {
  return new ServiceProblem(
    421,
    'host_unknown',
    'The host is not this one',
    'Use localhost, an address, or what HOST names.',
  )
}
