import { Decoder, type GlideClient, type GlideClusterClient } from '@valkey/valkey-glide'
import type { SendCommand } from 'once-per-key/redis'

/** For `new RedisStore({ sendCommand: sendBy(client), prefix: 'payments:' })`. */
export function sendBy(client: GlideClient): SendCommand {
  return (_key, args) => client.customCommand([...args], { decoder: Decoder.Bytes })
}

export function sendByCluster(client: GlideClusterClient): SendCommand {
  return (key, args) =>
    client.customCommand([...args], { decoder: Decoder.Bytes, route: { type: 'primarySlotKey', key } })
}
