import axios, { type AxiosInstance } from 'axios'
import axiosRetry from 'axios-retry'

/**
 * POSTs are sent again until their outcome is known, under the key that each is given:
 * `client.post(path, body, { headers: { 'Idempotency-Key': key } })`.
 */
export function retryingAxios(baseURL: string): AxiosInstance {
  const client = axios.create({ baseURL, timeout: 10_000 })
  axiosRetry(client, {
    retries: 8,
    shouldResetTimeout: true, // the time limit is for one attempt
    retryDelay: axiosRetry.exponentialDelay, // and at least what Retry-After says
    retryCondition({ code, response }) {
      if (response === undefined) return code !== 'ERR_CANCELED' // nobody knows: the key makes it safe
      if (response.status < 300) return true // an answer that broke off
      const word = response.headers['x-should-retry'] // the server's word, where it gives one
      return word ? word === 'true' : [408, 429].includes(response.status) || response.status >= 500
    },
  })
  return client
}
