#include "http2.h"


#if (NGX_HTTP_V2)

#include <ngx_http_v2_module.h>


ngx_uint_t
ngx_http_combined_upstreams_http2_is_rereadable(ngx_http_request_t *r,
    const ngx_module_t *v2)
{
    ngx_buf_t                *buf;
    ngx_http_v2_srv_conf_t   *h2scf;
    ngx_http_request_body_t  *rb;

    rb = r->request_body;

    if (r->stream == NULL || r->stream->skip_data
        || rb == NULL || rb->buf == NULL)
    {
        return 0;
    }

    buf = rb->buf;

    if (rb->received != buf->pos - buf->start) {
        /* nginx has used the buffer more than once */
        return 0;
    }

    if (r->stream->in_closed) {
        return 1;
    }

    /* nginx opens the window by what the buffer has room for beyond this size */

    h2scf = ngx_http_get_module_srv_conf(r, (*v2));

    return (size_t) (buf->end - buf->start) == h2scf->preread_size;
}


ngx_int_t
ngx_http_combined_upstreams_http2_unread(ngx_http_request_t *r)
{
    size_t                    size;
    ngx_buf_t                *buf, *preread;
    ngx_http_request_body_t  *rb;

    rb = r->request_body;
    buf = rb->buf;
    size = buf->last - buf->start;
    preread = NULL;

    if (size) {
        preread = ngx_create_temp_buf(r->pool, size);
        if (preread == NULL) {
            return NGX_ERROR;
        }

        preread->last = ngx_cpymem(preread->last, buf->start, size);
    }

    r->stream->preread = preread;

    /* nginx counts these bytes once more */

    r->request_length -= rb->received;

    ngx_pfree(r->pool, buf->start);
    r->request_body = NULL;

    return NGX_OK;
}

#else

ngx_uint_t
ngx_http_combined_upstreams_http2_is_rereadable(ngx_http_request_t *r,
    const ngx_module_t *v2)
{
    return 0;
}


ngx_int_t
ngx_http_combined_upstreams_http2_unread(ngx_http_request_t *r)
{
    return NGX_ERROR;
}

#endif
