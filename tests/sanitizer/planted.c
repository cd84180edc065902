/*
 * A module with faults, to see that the sanitizers of a build report them: the directive "planted" reads one byte
 * behind a small piece of a pool, or adds 1 to the largest int.
 */

#include <ngx_config.h>
#include <ngx_core.h>


static char *ngx_planted(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


static ngx_command_t  ngx_planted_commands[] = {

    { ngx_string("planted"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_planted,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_core_module_t  ngx_planted_module_ctx = {
    ngx_string("planted"),
    NULL,
    NULL
};


ngx_module_t  ngx_planted_module = {
    NGX_MODULE_V1,
    &ngx_planted_module_ctx,
    ngx_planted_commands,
    NGX_CORE_MODULE,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NGX_MODULE_V1_PADDING
};


ngx_module_t  *ngx_modules[] = { &ngx_planted_module, NULL };
char          *ngx_module_names[] = { "ngx_planted_module", NULL };
char          *ngx_module_order[] = { NULL };


static char *
ngx_planted(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char        *piece;
    ngx_str_t     *value;
    volatile int   number;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "overread") == 0) {
        piece = ngx_palloc(cf->pool, 24);
        if (piece == NULL) {
            return NGX_CONF_ERROR;
        }

        return ((volatile u_char *) piece)[24] ? NGX_CONF_OK : NULL;
    }

    number = 2147483647;
    number = number + 1;

    return NGX_CONF_OK;
}
