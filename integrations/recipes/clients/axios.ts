import axios, { type AxiosInstance } from 'axios'
import axiosRetry from 'axios-retry'

/**
 * A request with a key is sent again until its outcome is known:
 * `client.post(path, body, { headers: { 'Idempotency-Key': key } })`. Without a key it is sent once.
 */
export function retryingAxios(baseURL: string): AxiosInstance {
  const client = axios.create({ baseURL, timeout: 10_000 })
  axiosRetry(client, {
    retries: 8,
    shouldResetTimeout: true, // the time limit is for one attempt
    // At least what Retry-After says, and apart from others that wait.
    retryDelay: (count, error) => axiosRetry.exponentialDelay(count, error) + Math.random() * 1_000,
    retryCondition({ code, config, response }) {
      if (!config?.headers.get('Idempotency-Key')) return false // a second one could pay a second time
      if (response === undefined) return code !== 'ERR_CANCELED' // nobody knows: the key makes it safe
      if (response.status < 300) return true // an answer that broke off
      const word = response.headers['x-should-retry'] // the server's word, where it gives one
      return word ? word === 'true' : [408, 429].includes(response.status) || response.status >= 500
    },
  })
  return client
}
